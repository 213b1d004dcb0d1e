package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

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
