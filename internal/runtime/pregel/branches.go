package pregel

import (
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// CodeBranches lists the conditional edges of a node that code decides.
func CodeBranches(n *graph.Node) []graph.Branch {
	var out []graph.Branch
	for _, b := range n.Branches {
		if b.Router != "" {
			out = append(out, b)
		}
	}
	return out
}

// BranchState returns the state that a conditional edge of the task sees: with the
// updates of the task itself, and of no other. Errors: *ResultError, *UpdateError,
// *graph.LimitError.
func (s *State) BranchState(t *Task, r Result) (*State, error) {
	w := writeCollector{graph: s.graph, task: t}
	if err := w.addUpdates(r); err != nil {
		return nil, err
	}
	return lookAhead(s, replaceCombined(w.writes, r.CombinedValues))
}

// addBranches decides the conditional edges. They see the state s with the first
// own writes of this task applied.
func (w *writeCollector) addBranches(s *State, own int, r Result, routes map[string][]checkpoint.Send) error {
	n := w.task.Node
	if len(n.Branches) == 0 {
		return nil
	}
	ahead, err := lookAhead(s, replaceCombined(w.writes[:own:own], r.CombinedValues))
	if err != nil {
		return err
	}
	vars := graph.Vars{State: ahead.FullView(), Input: w.task.Input}
	for _, b := range n.Branches {
		targets, err := decideBranch(b, vars, routes)
		if err != nil {
			return fmt.Errorf("conditional edge %s of %s: %w", b.Name, n.Name, err)
		}
		for _, t := range targets {
			if err := w.addTarget(t); err != nil {
				return fmt.Errorf("conditional edge %s of %s: %w", b.Name, n.Name, err)
			}
		}
	}
	return nil
}

// decideBranch returns the targets of a branch: those of its router, those of its
// expression, or those of the first case that is true.
func decideBranch(b graph.Branch, vars graph.Vars, routes map[string][]checkpoint.Send) ([]checkpoint.Send, error) {
	switch {
	case b.Router != "":
		return mapPaths(b.Paths, routes[b.Name])
	case b.Expr != nil:
		v, err := b.Expr.Eval(vars)
		if err != nil {
			return nil, err
		}
		targets, err := ParseTargets(v)
		if err != nil {
			return nil, err
		}
		return mapPaths(b.Paths, targets)
	}
	for _, c := range b.Cases {
		holds := true
		if c.When != nil {
			v, err := c.When.Eval(vars)
			if err != nil {
				return nil, err
			}
			holds = v == "true"
			if !holds && v != "false" {
				return nil, &ResultError{Problem: "a condition must be true or false, not " + shortenValue(v)}
			}
		}
		if holds {
			targets := make([]checkpoint.Send, len(c.To))
			for i, to := range c.To {
				targets[i].Node = to
			}
			return targets, nil
		}
	}
	return nil, nil
}

// mapPaths looks up the keys of a conditional edge. Sends are returned as they
// are.
func mapPaths(paths map[string]string, targets []checkpoint.Send) ([]checkpoint.Send, error) {
	if paths == nil {
		return targets, nil
	}
	out := make([]checkpoint.Send, len(targets))
	for i, t := range targets {
		out[i] = t
		if t.Input != "" {
			continue
		}
		node, ok := paths[t.Node]
		if !ok {
			known := make([]string, 0, len(paths))
			for k := range paths {
				known = append(known, k)
			}
			slices.Sort(known)
			return nil, &TargetError{Target: t.Node, Known: known}
		}
		out[i].Node = node
	}
	return out, nil
}

// replaceCombined replaces the writes to channels that a worker has combined.
func replaceCombined(writes []checkpoint.Write, values map[string]payload.JSON) []checkpoint.Write {
	done := []TaskWrites{{Writes: writes}}
	for channel, value := range values {
		done = ReplaceWrites(done, channel, value)
	}
	return done[0].Writes
}
