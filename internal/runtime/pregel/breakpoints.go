package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// interruptNode is the name under which a checkpoint records what the last
// pass of a static breakpoint has seen.
const interruptNode = "__interrupt__"

// Breaks reports whether a static breakpoint on the given nodes stops the
// superstep of these tasks, and on which of them: only when a channel has
// changed since a breakpoint was last passed. Channels that the graph no
// longer has do not count.
func (s *State) Breaks(on []string, tasks []*Task) []string {
	if len(on) == 0 || !s.changedSinceBreak() {
		return nil
	}
	var hit []string
	for _, t := range tasks {
		if t.Node.Kind == graph.KindStart {
			continue
		}
		if slices.Contains(on, graph.Every) || slices.Contains(on, t.Node.Name) {
			hit = append(hit, t.Node.Name)
		}
	}
	slices.Sort(hit)
	return slices.Compact(hit)
}

func (s *State) changedSinceBreak() bool {
	for i := range s.graph.Channels {
		c := &s.cp.Channels[i]
		if c.Version > s.seenVersion(interruptNode, c.Name) {
			return true
		}
	}
	return false
}

// PassBreak returns the state with every channel marked as seen by
// breakpoints, so that going on does not stop at the same place again.
func (s *State) PassBreak() *State {
	e := s.edit(0)
	versions := make([]checkpoint.SeenVersion, 0, len(s.graph.Channels))
	for i := range s.graph.Channels {
		if c := &s.cp.Channels[i]; c.Version > 0 {
			versions = append(versions, checkpoint.SeenVersion{Channel: c.Name, Version: c.Version})
		}
	}
	e.setSeen(interruptNode, versions)
	next := *s.cp
	next.Seen = e.seen
	return &State{
		graph: s.graph, cp: &next, untracked: s.untracked, sealed: s.sealed, top: s.top,
		limits: s.limits, sizes: s.sizes, total: s.total,
	}
}
