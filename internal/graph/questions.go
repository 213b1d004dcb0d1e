package graph

import (
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/payload"
)

// ListQuestions returns the places where a graph may stop for people, each as a text:
// nodes that ask, breakpoints, and graphs inside, which may ask. It does not know what
// the code of workers asks.
func ListQuestions(s *Spec) []string {
	var list []string
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.Ask != nil:
			list = append(list, fmt.Sprintf("the question of node %q", n.Name))
		case n.Graph != nil:
			list = append(list, fmt.Sprintf("what graph %q asks in node %q", n.Graph.Name, n.Name))
		}
	}
	for _, node := range s.InterruptBefore {
		list = append(list, fmt.Sprintf("the breakpoint before %q", node))
	}
	for _, node := range s.InterruptAfter {
		list = append(list, fmt.Sprintf("the breakpoint after %q", node))
	}
	return list
}

// ListRemovedQuestions returns the questions of a graph that another version of it does
// not ask, asks otherwise, or may pass by; an older version that is nil has none.
//
// It does not guess: where the versions differ in anything that decides what runs, or
// what a condition sees, every question of the older one counts as passed by. What may
// differ is listed in stripUnrelated; questions may be added to the breakpoints.
func ListRemovedQuestions(older, newer *Spec) []string {
	if older == nil {
		return nil
	}
	questions := ListQuestions(older)
	if len(questions) == 0 {
		return nil
	}
	before, after := stripUnrelated(older), stripUnrelated(newer)
	after.InterruptBefore = keepBreakpoints(before.InterruptBefore, after.InterruptBefore)
	after.InterruptAfter = keepBreakpoints(before.InterruptAfter, after.InterruptAfter)
	if hasSameText(before, after) {
		return nil
	}
	return questions
}

// hasSameText compares all of two graphs but the order of their nodes and channels.
func hasSameText(a, b *Spec) bool {
	return payload.CanonicalDigest(payload.JSON(EncodeSpec(a))) == payload.CanonicalDigest(payload.JSON(EncodeSpec(b)))
}

// stripUnrelated returns a graph without the parts that have no influence on whether a
// question is asked, and what.
func stripUnrelated(s *Spec) *Spec {
	c := *s
	c.Version, c.Description, c.Metadata = "", "", nil
	c.Output, c.OutputSchema = nil, ""
	c.StepLimit, c.StepTimeout = 0, 0
	c.Nodes = slices.Clone(s.Nodes)
	hasHandlers := s.Defaults.ErrorHandler != ""
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Description, n.Metadata = "", nil
		hasHandlers = hasHandlers || n.Policy.ErrorHandler != ""
	}
	if hasHandlers { // a failed attempt, or one that takes too long, leads elsewhere
		return &c
	}
	c.Defaults = PolicySpec{}
	for i := range c.Nodes {
		c.Nodes[i].Policy = PolicySpec{}
	}
	return &c
}

// keepBreakpoints returns the older breakpoints if the newer ones have all of them, and
// else the newer ones.
func keepBreakpoints(older, newer []string) []string {
	for _, node := range older {
		if !slices.Contains(newer, node) && !slices.Contains(newer, AllNodes) {
			return newer
		}
	}
	return older
}
