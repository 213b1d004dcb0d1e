package superstep

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// commitSuperstep ends the superstep: one commit with the next checkpoint, its events,
// the answers that were used, the supersteps without effects that follow, and the end of
// the run if there is no next superstep.
func (l *graphLoop) commitSuperstep(ctx context.Context, s *superstep) *End {
	var (
		next  *frame
		v     *End
		known progress
		bad   error
	)
	err := l.thread.commitChange(func(t *commit.Tx) error {
		var (
			state *pregel.State
			tasks []*pregel.Task
			err   error
		)
		if state, tasks, bad = s.applySuperstep(t); bad != nil {
			return commit.ErrNoChange
		}
		if known, err = l.loadUnkeptProgress(state); err != nil {
			return err
		}
		if next != nil { // an earlier attempt
			next.setHeldBytes(0)
		}
		next = l.nextFrame(state, tasks)
		if v = l.decideEnd(state, tasks, s.plannedTasks(), &known); v == nil {
			v = next.runInline(ctx, t)
		}
		if !l.level.isRoot {
			return nil
		}
		t.Head.Answered = 0 // all of them are used
		if v == nil {
			return nil
		}
		return l.writeTo(t).putRunEnd(next.state, v)
	})
	switch {
	case err != nil:
		return errorEnd(err)
	case bad != nil:
		s.setMergeFailure(bad, updateFailure(bad))
		r := s.commitSuperstepEnd(*failedEnd(s.mergeFailure))
		return &r
	}
	l.advanceTo(next)
	l.maybeHandedOut = l.maybeHandedOut && !l.level.keepsCheckpoints
	l.setProgress(known)
	l.clearMemos()
	l.setHeldBytes(l.measureBytes())
	if v != nil && !v.IsCommitted {
		end := l.commitEnd(*v)
		return &end
	}
	return v
}

// commitEnd makes the end of the loop durable.
func (l *graphLoop) commitEnd(v End) End {
	s := &superstep{frame: &l.frame, mustReportState: l.mustReportState && len(l.tasks) == 0}
	return s.commitSuperstepEnd(v)
}

// commitSuperstepEnd commits the end together with the outcomes of the last superstep.
func (s *superstep) commitSuperstepEnd(v End) End {
	fr := s.frame
	if v.Err != nil || v.IsCommitted {
		return v
	}
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		s.emitTaskEvents(t)
		if err := s.putTaskRecords(t); err != nil {
			return err
		}
		s.putReturned(t, v)
		s.putPreview(t)
		s.putCutOff(t, v)
		if fr.level.isRoot {
			return fr.writeTo(t).putRunEnd(fr.state, &v)
		}
		if v.breakpoint != nil {
			t.PutBreakpoint(v.breakpoint, fr.state.NextStep())
		}
		if len(t.LiveEvents) == 0 && len(t.Tasks) == 0 && len(t.Interrupts) == 0 {
			return commit.ErrNoChange
		}
		return nil
	})
	if err != nil {
		return End{State: v.State, Err: err}
	}
	return v
}

// cutOffEnd says how the loop ends when its work was stopped from outside.
func (s *superstep) cutOffEnd(ctx context.Context) *End {
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
	v = s.commitSuperstepEnd(v)
	return &v
}

// reduceResults has workers combine the writes of a superstep, for the channels
// whose reducer they know. It returns nil when the superstep can be applied.
func (s *superstep) reduceResults(ctx context.Context) *End {
	fr := s.frame
	if !fr.Graph().HasWorkerReducer() {
		return nil
	}
	merged, channel, f := reducerCaller{frame: fr, canEmit: true}.reduceWrites(ctx, fr.state, s.finishedWrites())
	if v := s.cutOffEnd(ctx); v != nil {
		return v
	}
	if f != nil {
		s.mergeFailure, s.mergeChannel = f, channel
		v := s.commitSuperstepEnd(*failedEnd(f))
		return &v
	}
	s.reduced = merged
	return nil
}
