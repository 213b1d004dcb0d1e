package superstep

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// attempt is one attempt of a task, with its outcome so far. Nothing refers to it when
// it is over: it lives on the stack.
type attempt struct {
	*frame
	outcome

	span Span // nil = it is not traced
}

// newAttempt begins an attempt of a task, 1 = the first.
func (fr *frame) newAttempt(t *pregel.Task, n int) attempt {
	return attempt{frame: fr, outcome: outcome{task: t, attempt: n}}
}

// failAttempt settles a failed attempt.
func (at *attempt) failAttempt(ctx context.Context, f *pregel.Failure) {
	at.setFailure(f)
	switch {
	case ctx.Err() != nil:
		at.cutOffAttempt(ctx)
	case at.task.Node.Kind == graph.KindGraph && (f.Reason == runtime.FailedCancelledByClient || f.Reason == reasonStoppedHere):
		at.isAborted, at.isSubgraphStopped = true, true
	}
}

// cutOffAttempt ends an attempt that was stopped from outside: it counts as if it
// had never begun, except that too slow a superstep is its tasks' failure.
func (at *attempt) cutOffAttempt(ctx context.Context) {
	if !errors.Is(context.Cause(ctx), errStepTimeout) {
		at.isAborted = true
		return
	}
	at.setFailure(permanentFailure(runtime.FailedStepTimeout, "the superstep did not end within "+at.Graph().Spec.StepTimeout.String()))
}

// reasonStoppedHere is why the node of a subgraph has not ended that goes on elsewhere.
// It is neither stored nor shown.
const reasonStoppedHere = "STOPPED_HERE"
