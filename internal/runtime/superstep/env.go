// Package superstep drives one graph of a run: it executes the tasks of a superstep,
// turns results into a change, and decides whether the graph goes on.
//
// Env holds the parts of the server that it uses, Thread the ports to the thread. The
// package holds no lease and knows no other thread.
package superstep

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// Env holds the parts of a server that all its loops use. It is made once and not
// changed then.
type Env struct {
	Store    checkpoint.Store
	Reader   *query.Reader
	Executor runtime.Executor
	Schemas  runtime.Schemas // nil = values are not checked
	// Conditions evaluates conditions of policies; nil = there can be none.
	Conditions   runtime.Conditions
	KnowsCallers bool          // the server knows who answers
	KeepsSecrets bool          // the store encrypts its records, or keeps them in memory
	Undo         time.Duration // how long answers can be taken back by default
	Observer     runtime.Observer
	Tracer       Tracer // nil = nothing is traced
	Log          *zap.Logger
	Now          func() time.Time // the store's time

	Limits           pregel.Limits
	StepLimit        int   // supersteps of a run by default
	ParallelTasks    int   // tasks of one superstep at the same time
	StepsPerCommit   int   // supersteps without effects that share a commit, 1 = none
	MaxTaskMemoBytes int64 // bytes of memos that a task may record

	CommitTime time.Duration // after which no further superstep joins a commit

	TracksTasks      bool        // it matters where workers are
	IsDraining       func() bool // the server stops
	IsMemoryExceeded func() bool // the live runs of the server hold too much
}

// executeContained calls the executor and turns a panic, which it should have caught
// itself, into a failed attempt: a node must not take the server with it.
func (e *Env) executeContained(ctx context.Context, t *runtime.Task) (r pregel.Result) {
	defer func() {
		if v := recover(); v != nil {
			r = e.failPanicked(t, contain.NewPanicError(v))
		}
	}()
	return e.Executor.Execute(ctx, t)
}

// failPanicked logs the panic of an executor and returns the result of its attempt.
func (e *Env) failPanicked(t *runtime.Task, p *contain.PanicError) pregel.Result {
	e.Log.Error("an executor panicked; the attempt fails", append(p.Fields(),
		zap.String("thread", t.Thread), zap.String("run", t.Run), zap.String("task", t.ID))...)
	return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: "panic", Message: "the node panicked; the operator's log says where",
	}}}
}
