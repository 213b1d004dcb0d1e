// Package profile keeps the profiles of the connected workers, up to the limits: the
// tasks that each takes, and their number.
package profile

import (
	"maps"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// Profile has the entries that the worker of a session has sent. The caller's lock
// guards it.
type Profile[S any] struct {
	Session   *S
	Hello     message.Hello
	Credit    message.Credit
	IsLeaving bool // it takes no further task

	coverage     *coverage.Coverage
	countedBytes int64 // in its table
}

// New makes the profile of a worker that has introduced itself.
func New[S any](session *S, hello message.Hello) *Profile[S] {
	return &Profile[S]{Session: session, Hello: hello, Credit: hello.Credit, coverage: coverage.NewCoverage(hello.Capabilities)}
}

// CanServe reports whether the worker runs tasks of a route. A reducer belongs to
// no node: every worker of the graph can run it.
func (p *Profile[S]) CanServe(r queue.Route) bool {
	if r.NeedsComparison && !p.Hello.ComparesAnswers {
		return false
	}
	return p.coverage.Covers(r.Capability())
}

// DescribeWorker describes the worker, without its free slots and its last heartbeat.
func (p *Profile[S]) DescribeWorker() runtime.Worker {
	return runtime.Worker{
		ID: p.Hello.Worker, Slots: p.Credit.Total, Labels: maps.Clone(p.Hello.Labels), Draining: p.IsLeaving, Build: p.Hello.BuildID,
		Nodes: p.Hello.ListNodes(),
	}
}
