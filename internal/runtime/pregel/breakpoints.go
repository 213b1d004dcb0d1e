package pregel

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
)

// interruptNode is the name under which a checkpoint records which channel versions
// static breakpoints have passed.
const interruptNode = "__interrupt__"

// HitBreakpoints reports whether a static breakpoint on the given nodes stops the
// superstep of these tasks, and on which of them: only when a channel has
// changed since a breakpoint was last passed. Channels that the graph no
// longer has do not count.
func (s *State) HitBreakpoints(on []string, tasks []*Task) []string {
	if len(on) == 0 || !hasChangedSinceBreakpoint(s.graph, s.checkpoint) {
		return nil
	}
	var hit []string
	for _, t := range tasks {
		if t.Node.Kind == graph.KindStart {
			continue
		}
		if slices.Contains(on, graph.AllNodes) || slices.Contains(on, t.Node.Name) {
			hit = append(hit, t.Node.Name)
		}
	}
	slices.Sort(hit)
	return slices.Compact(hit)
}

func hasChangedSinceBreakpoint(g *graph.Graph, cp *checkpoint.Checkpoint) bool {
	for i := range g.Channels {
		c := &cp.Channels[i]
		if c.Version > seenVersion(cp.Seen, interruptNode, c.Name) {
			return true
		}
	}
	return false
}

// MarkBreakpointsPassed returns the state with every channel marked as seen by
// breakpoints, so that going on does not stop at the same place again.
func (s *State) MarkBreakpointsPassed() *State {
	e := newStateEdit(s, 0)
	versions := make([]checkpoint.SeenVersion, 0, len(s.graph.Channels))
	for i := range s.graph.Channels {
		if c := &s.checkpoint.Channels[i]; c.Version > 0 {
			versions = append(versions, checkpoint.SeenVersion{Channel: c.Name, Version: c.Version})
		}
	}
	e.setSeen(interruptNode, versions)
	next := *s.checkpoint
	next.Seen = e.seen
	return &State{
		values: values{graph: s.graph, checkpoint: &next, untracked: s.untracked}, sharedUpTo: s.sharedUpTo, topVersion: s.topVersion,
		limits: s.limits, size: s.size,
	}
}
