package superstep

import (
	"context"
	"errors"
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// interpretResult turns a result into writes, interrupts or a failure.
func (at *attempt) interpretResult(ctx context.Context) {
	if at.result.Failure != nil {
		at.failAttempt(ctx, at.result.Failure)
		return
	}
	if f := at.checkWaiting(ctx); f != nil {
		at.failAttempt(ctx, f)
		return
	}
	if f := at.checkUsedAnswers(); f != nil {
		at.failAttempt(ctx, f)
		return
	}
	if len(at.result.Asks) > 0 {
		at.handleAsks(ctx)
		if at.failure == nil {
			at.openInterrupts = append(at.openInterrupts, at.result.WaitingInterrupts...)
		}
		return
	}
	if len(at.result.WaitingInterrupts) > 0 {
		at.openInterrupts = at.result.WaitingInterrupts
		return
	}
	if at.result.ToParent {
		if at.level.isRoot {
			at.failAttempt(ctx, permanentFailure(runtime.FailedInvalidUpdate, "a command for the parent graph, but this graph has no parent"))
		}
		return
	}
	if f := at.reduceForRouting(ctx); f != nil {
		at.failAttempt(ctx, f)
		return
	}
	routes, f := at.callRouters(ctx)
	if f != nil {
		at.failAttempt(ctx, f)
		return
	}
	writes, err := at.state.CompleteTask(at.task, at.result, routes)
	if err != nil {
		stored := updateFailure(err)
		at.failAttempt(ctx, &pregel.Failure{Failure: *stored, Permanent: true})
		return
	}
	at.writes = writes
}

// callRouters asks code for the decisions of the conditional edges that need it.
func (at *attempt) callRouters(ctx context.Context) (map[string][]checkpoint.Send, *pregel.Failure) {
	routers := pregel.CodeBranches(at.task.Node)
	if len(routers) == 0 {
		return nil, nil
	}
	ahead, err := at.state.BranchState(at.task, at.result)
	if err != nil {
		return nil, &pregel.Failure{Failure: *updateFailure(err), Permanent: true}
	}
	routes := make(map[string][]checkpoint.Send, len(routers))
	for _, b := range routers {
		r := at.callNode(ctx, max(at.attempt, 1), b, ahead)
		switch {
		case r.Failure != nil:
			return nil, r.Failure
		case len(r.Asks)+len(r.WaitingInterrupts) > 0:
			return nil, permanentFailure(runtime.FailedInvalidUpdate, "a conditional edge cannot ask questions; ask in the node")
		}
		routes[b.Name] = r.Goto
	}
	return routes, nil
}

// checkWaiting refuses to wait for interrupts that the thread does not have. Called
// graphs wait for their own.
func (at *attempt) checkWaiting(ctx context.Context) *pregel.Failure {
	if at.task.Node.Kind != graph.KindRemote {
		return nil
	}
	for _, id := range at.result.WaitingInterrupts {
		_, err := at.env.Store.Interrupt(ctx, at.thread.ID, id)
		if errors.Is(err, checkpoint.ErrInterruptNotFound) {
			return permanentFailure(runtime.FailedInvalidUpdate, fmt.Sprintf("the node waits for question %q, which the thread does not have", id))
		}
	}
	return nil
}
