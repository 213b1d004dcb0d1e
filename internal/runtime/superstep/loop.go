package superstep

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// graphLoop drives one graph of a run, superstep by superstep: the root graph, or a
// subgraph inside a task. Tasks and changes see its frame alone.
type graphLoop struct {
	frame

	beginsWithCopy bool // it begins with a copy of the checkpoint in state
}

// End is how a loop has ended.
type End struct {
	State          checkpoint.RunState // running = another process shall go on
	Failure        *checkpoint.Failure
	openInterrupts []string              // interrupts that are open
	command        *pregel.Result        // for the enclosing graph
	Err            error                 // the store failed or the lease is lost: nothing was decided
	IsCommitted    bool                  // the end is durable already
	breakpoint     *checkpoint.Interrupt // a breakpoint, to be stored with the end
}

// RunSupersteps runs the loop to its end.
func (l *graphLoop) RunSupersteps(ctx context.Context) End {
	if v := l.decideEnd(l.state, l.tasks, nil, &l.pending); v != nil {
		return l.commitEnd(*v)
	}
	for steps := 0; ; steps++ {
		if v := l.requestedEnd(steps); v != nil {
			return l.commitEnd(*v)
		}
		if v := l.runSuperstep(ctx, steps); v != nil {
			return *v
		}
		if l.level.isRoot && l.run.Request.From == "" { // a run through the past is left alone
			l.thread.History.PruneLive(l.run)
		}
	}
}

// requestedEnd returns how the run ends when it must stop between supersteps:
// cancel, drain, or eviction.
func (l *graphLoop) requestedEnd(steps int) *End {
	if !l.level.isRoot && !l.level.isStoppable {
		return nil
	}
	if l.thread.Stop.IsStopping() {
		return &End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
	}
	if l.env.IsDraining() && (l.level.isRoot || l.level.replay == nil) { // a replay does not outlive the server
		return &End{State: checkpoint.RunRunning}
	}
	if l.shouldYield(steps) {
		return &End{State: checkpoint.RunRunning}
	}
	return nil
}

func failedEnd(f *checkpoint.Failure) *End {
	return &End{State: checkpoint.RunFailed, Failure: f}
}

func errorEnd(err error) *End { return &End{State: checkpoint.RunFailed, Err: err} }

// runSuperstep runs the tasks that are due and commits their results. It returns nil
// when the graph goes on.
func (l *graphLoop) runSuperstep(ctx context.Context, steps int) *End {
	w := l.planSuperstep()
	if len(w.toRun) > 0 {
		w.executeTasks(ctx)
	}
	if w.storeErr != nil {
		return errorEnd(w.storeErr)
	}
	if v := w.cutOffEnd(ctx); v != nil {
		return v
	}
	if w.hasStoppedSubgraph() {
		v := End{State: checkpoint.RunRunning}
		if l.thread.Stop.IsStopping() {
			v = End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
		}
		v = w.commitSuperstepEnd(v)
		return &v
	}
	if w.command != nil && !l.level.isRoot {
		return &End{State: checkpoint.RunSucceeded, command: w.command}
	}
	if f := w.firstFailure(); f != nil {
		w.reducePartial(ctx)
		v := w.commitSuperstepEnd(*failedEnd(f))
		return &v
	}
	if len(w.openInterruptIDs()) > 0 {
		return l.pauseForAnswers(ctx, w)
	}
	if w.shouldDiscard(steps) {
		v := l.commitEnd(End{State: checkpoint.RunRunning})
		return &v
	}
	if v := w.reduceResults(ctx); v != nil {
		return v
	}
	return l.commitSuperstep(ctx, w)
}

// cutOffEnd says how the loop ends when its work was stopped from outside.
func (w *superstep) cutOffEnd(ctx context.Context) *End {
	if ctx.Err() == nil {
		return nil
	}
	var v End
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrLeaseLost):
		return errorEnd(ErrLeaseLost)
	case errors.Is(cause, ErrServerDrains), errors.Is(cause, ErrMovedToWorkers), errors.Is(cause, ErrUnserved):
		v = End{State: checkpoint.RunRunning}
	case errors.Is(cause, ErrRunTimedOut), errors.Is(cause, context.DeadlineExceeded):
		v = End{State: checkpoint.RunTimedOut, Failure: &checkpoint.Failure{
			Reason: runtime.FailedRunTimeout, Message: "the run did not end within its timeout",
		}}
	default:
		v = End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
	}
	v = w.commitSuperstepEnd(v)
	return &v
}
