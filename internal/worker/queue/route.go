// Package queue keeps the tasks that wait for workers, by what a worker must serve
// to run them, and matches them with the workers that have free slots.
package queue

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Route is what a worker must serve to run a task.
type Route struct {
	Graph, Version, Node string
	NeedsComparison      bool // it must compare what it asks with what was answered
}

// NeedsComparison reports whether a task has answers that must be compared with
// what the code asks: a worker that does not compare must not get them.
func NeedsComparison(t *runtime.Task) bool {
	spec := t.Graph.Spec
	return len(t.Journal.Answers) > 0 && t.Router == "" && t.Reduce == nil && (spec == nil || spec.Drift != graph.DriftAccept)
}

// RouteOf says who may run a task. A reducer belongs to the whole graph.
func RouteOf(t *runtime.Task) Route {
	r := Route{Graph: t.Graph.Name, Version: t.Graph.Version, NeedsComparison: NeedsComparison(t)}
	if t.Node != nil {
		r.Node = t.Node.Name
	}
	return r
}

// WithoutComparison is the route of tasks that need no comparison.
func (r Route) WithoutComparison() Route {
	r.NeedsComparison = false
	return r
}

// Capability is what a worker must take to run tasks of the route.
func (r Route) Capability() checkpoint.Capability {
	return checkpoint.Capability{Graph: r.Graph, Version: r.Version, Node: r.Node}
}
