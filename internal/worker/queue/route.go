// Package queue keeps waiting tasks by their routes, and matches them with the
// workers that have free slots. A route names the capabilities that a task needs of its worker.
package queue

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Route has the capabilities that a task needs of its worker.
type Route struct {
	Graph, Version, Node string
	NeedsComparison      bool // the worker must compare its questions with the answered questions
}

// NeedsComparison reports whether a task has answers that must be compared with
// the questions of the code. A worker that does not compare must not get such answers.
func NeedsComparison(t *runtime.Task) bool {
	spec := t.Graph.Spec
	return len(t.Journal.Answers) > 0 && t.Router == "" && t.Reduce == nil && (spec == nil || spec.Drift != graph.DriftAccept)
}

// RouteOf returns the route of a task. A reducer belongs to the whole graph.
func RouteOf(t *runtime.Task) Route {
	r := Route{Graph: t.Graph.Name, Version: t.Graph.Version, NeedsComparison: NeedsComparison(t)}
	if t.Node != nil {
		r.Node = t.Node.Name
	}
	return r
}

// WithoutComparison returns the route for tasks that need no comparison.
func (r Route) WithoutComparison() Route {
	r.NeedsComparison = false
	return r
}

// Capability returns the capability that a worker needs to run tasks of the
// route.
func (r Route) Capability() checkpoint.Capability {
	return checkpoint.Capability{Graph: r.Graph, Version: r.Version, Node: r.Node}
}
