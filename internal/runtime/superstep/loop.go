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
	if l.thread.Stop.IsStopping() && !l.isWithinSuperstep {
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
	span := l.traceStep(ctx)
	if span == nil {
		return l.performSuperstep(ctx, steps)
	}
	v := l.performSuperstep(span.Within(ctx), steps)
	endStep(span, v)
	return v
}

func (l *graphLoop) performSuperstep(ctx context.Context, steps int) *End {
	l.isWithinSuperstep = false
	s := l.planSuperstep()
	if len(s.toRun) > 0 {
		s.executeTasks(ctx)
	}
	if s.storeErr != nil {
		return errorEnd(s.storeErr)
	}
	if v := s.cutOffEnd(ctx); v != nil {
		return v
	}
	if s.hasStoppedSubgraph() {
		v := End{State: checkpoint.RunRunning}
		if l.thread.Stop.IsStopping() {
			v = End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
		}
		v = s.commitSuperstepEnd(v)
		return &v
	}
	if s.command != nil && !l.level.isRoot {
		return &End{State: checkpoint.RunSucceeded, command: s.command}
	}
	if f := s.firstFailure(); f != nil {
		s.reducePartial(ctx)
		v := s.commitSuperstepEnd(*failedEnd(f))
		return &v
	}
	if len(s.openInterruptIDs()) > 0 {
		return l.pauseForAnswers(ctx, s)
	}
	if s.shouldDiscard(steps) {
		v := l.commitEnd(End{State: checkpoint.RunRunning})
		return &v
	}
	if v := s.reduceResults(ctx); v != nil {
		return v
	}
	return l.commitSuperstep(ctx, s)
}
