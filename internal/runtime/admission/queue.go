package admission

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// admitToBusyThread decides about a run for a thread that is busy.
func (s *startCall) admitToBusyThread(ctx context.Context, head *checkpoint.Head, g *graph.Graph) (*runtime.Started, error) {
	switch s.req.Concurrency {
	case runtime.EnqueueBusy:
		return s.enqueueRun(ctx, head, g, false)
	case runtime.CancelActive, runtime.RollbackActive:
		return s.enqueueRun(ctx, head, g, true)
	default:
		active := head.Run
		if head.State != checkpoint.ThreadBusy {
			active = head.Queue[0]
		}
		return nil, runtime.Errorf(runtime.ReasonThreadBusy, "run %q of the thread is active; wait for it, or choose another concurrency policy", active).
			With("activeRunId", active)
	}
}

// enqueueRun puts the run behind the active run. With first it overtakes the other
// queued runs, and the active run is asked to stop.
func (s *startCall) enqueueRun(ctx context.Context, head *checkpoint.Head, g *graph.Graph, first bool) (*runtime.Started, error) {
	return s.storeQueuedRun(ctx, head, g, func(t *commit.Tx, run *checkpoint.Run) error {
		if first {
			t.Head.Queue = slices.Insert(slices.Clone(t.Head.Queue), 0, run.ID)
			if err := s.cancelActiveRun(ctx, t); err != nil {
				return err
			}
		} else {
			t.Head.Queue = append(slices.Clone(t.Head.Queue), run.ID)
		}
		if t.Head.State == checkpoint.ThreadIdle || t.Head.State == checkpoint.ThreadFailed {
			t.ScheduleBy(t.Now)
		}
		return nil
	})
}

// storeLaterRun stores a run that begins when its delay is over. Other runs of the thread go before
// it until then.
func (s *startCall) storeLaterRun(ctx context.Context, head *checkpoint.Head, g *graph.Graph) (*runtime.Started, error) {
	return s.storeQueuedRun(ctx, head, g, func(t *commit.Tx, run *checkpoint.Run) error {
		if err := checkThreadOutlives(t, run.Begins); err != nil {
			return err
		}
		t.Head.Later = append(slices.Clone(t.Head.Later), checkpoint.LaterRun{Run: run.ID, Begins: run.Begins})
		slices.SortStableFunc(t.Head.Later, func(a, b checkpoint.LaterRun) int { return a.Begins.Compare(b.Begins) })
		if t.Head.State != checkpoint.ThreadBusy {
			t.ScheduleBy(run.Begins)
		}
		return nil
	})
}

// checkThreadOutlives refuses a run that would begin when its thread is deleted already.
func checkThreadOutlives(t *commit.Tx, begins time.Time) error {
	head := t.Head
	head.Updated = t.Now
	expires := commit.ExpiryTime(&head)
	if expires.IsZero() || begins.Before(expires) {
		return nil
	}
	return runtime.Errorf(runtime.ReasonInvalidField, "the thread expires at %s, before the run begins", expires.Format(time.RFC3339)).
		WithViolation("run.begin_after", "must be shorter than the thread is kept")
}

// storeQueuedRun stores a run that waits; put puts it among those that do.
func (s *startCall) storeQueuedRun(
	ctx context.Context, head *checkpoint.Head, g *graph.Graph, put func(*commit.Tx, *checkpoint.Run) error,
) (*runtime.Started, error) {
	done, err := s.opts.Holdings.AddQueuedRun(ctx, head.Thread)
	if err != nil {
		return nil, err
	}
	defer done()
	var run *checkpoint.Run
	next, err := s.opts.Changer.ChangeFrom(ctx, *head, func(t *commit.Tx) error {
		if err := s.recheckDecision(ctx, t, head); err != nil {
			return err
		}
		t.Actor = s.req.By.Name
		if n := t.Head.CountWaiting(); n >= s.opts.QueueLimit {
			return runtime.Errorf(runtime.ReasonThreadQueueFull, "%d runs are waiting already (--queued-runs)", n).
				With("limit", strconv.Itoa(s.opts.QueueLimit)).With("option", "queued-runs")
		}
		if err := s.labelThread(t); err != nil {
			return err
		}
		run = s.newRun(t, g, checkpoint.RunQueued)
		if err := put(t, run); err != nil {
			return err
		}
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State})
		run.FirstEvent, run.LastEvent = t.Head.LastEvent, t.Head.LastEvent
		t.Runs = append(t.Runs, *run)
		s.recordRequest(t, run.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.opts.Observer.RunStarted(run.Graph)
	s.opts.WakeScheduler()
	return &runtime.Started{Run: *run, Head: next, After: runtime.CursorBefore(run.FirstEvent)}, nil
}

// recheckDecision makes sure that a decision holds when the change is made through a
// live run whose head has moved since.
func (s *startCall) recheckDecision(ctx context.Context, t *commit.Tx, head *checkpoint.Head) error {
	if t.Head.Revision == head.Revision {
		return nil
	}
	if t.Head.State != head.State {
		return checkpoint.ErrConflict
	}
	_, known, err := s.findEarlierRun(ctx, s.opts.Reader, &t.Head)
	if known {
		return checkpoint.ErrConflict
	}
	return err
}

// cancelActiveRun asks the active run, if any, to stop.
func (s *startCall) cancelActiveRun(ctx context.Context, t *commit.Tx) error {
	if t.Head.State != checkpoint.ThreadBusy {
		return nil
	}
	err := s.opts.Canceller.PutRequest(ctx, t, checkpoint.Cancel{
		Run: t.Head.Run, Rollback: s.req.Concurrency == runtime.RollbackActive,
		Reason: "another run takes its place", By: s.req.By.Name,
	})
	if errors.Is(err, commit.ErrNoChange) {
		return nil // it was asked already
	}
	return err
}
