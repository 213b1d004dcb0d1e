package threads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// CheckpointsToKeep returns the number of checkpoints that a thread keeps at rest,
// 0 = all.
func (m *Manager) CheckpointsToKeep(h *checkpoint.Head) uint64 {
	switch {
	case h.Keep > 0:
		return uint64(h.Keep)
	case h.Keep < 0:
		return 0
	}
	return m.opts.KeepCheckpoints
}

// PruneBound returns the number of the oldest checkpoint that a thread's history
// must keep. The checkpoints of the present superstep are always kept.
func (m *Manager) PruneBound(h *checkpoint.Head) uint64 { return oldestKept(h, m.CheckpointsToKeep(h)) }

func oldestKept(h *checkpoint.Head, keep uint64) uint64 {
	if keep == 0 || h.Seq < keep {
		return 0
	}
	return min(h.Seq+1-keep, pregel.CheckpointSeq(h.Checkpoint))
}

// PruneTime returns the time at which a thread is to be pruned, zero = never. A
// history may exceed its limit a little, so that not every run causes a prune.
// The delay gives followers of the thread time to catch up.
func (m *Manager) PruneTime(h *checkpoint.Head) time.Time {
	if h.State == checkpoint.ThreadBusy || m.PruneBound(h) <= max(h.FirstSeq, 1)+m.CheckpointsToKeep(h)/4 {
		return time.Time{}
	}
	return h.Updated.Add(m.opts.PruneDelay)
}

// IsPruneDue reports whether it is time to cut off a thread's history.
func (m *Manager) IsPruneDue(h *checkpoint.Head) bool {
	at := m.PruneTime(h)
	return !at.IsZero() && !at.After(h.Now)
}

// PruneRested prunes a thread at rest. It removes old checkpoints, and the events before
// the remaining checkpoints. It keeps the checkpoints that interrupts and the thread's
// run refer to. It skips a prune that fails with checkpoint.ErrCorrupt. The other errors
// are those of Committer.TryChange and of PutPrune.
func (m *Manager) PruneRested(ctx context.Context, head checkpoint.Head) error {
	from := min(m.PruneBound(&head), max(head.FirstSeq, 1)+MaxPrunedAtOnce)
	_, err := m.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.FirstSeq = from
		t.Head.Updated, t.Head.Due = head.Updated, t.Now // the next look finds other due work
		var run checkpoint.Run
		if head.Run != "" {
			var err error
			if run, err = m.opts.Store.Run(ctx, head.Thread, head.Run); err != nil {
				return runtime.TranslateStoreError(err)
			}
		}
		if head.State == checkpoint.ThreadInterrupted && run.Request.From != "" {
			return nil // the replay prunes when it has ended
		}
		return m.PutPrune(ctx, t, &run, from)
	})
	if errors.Is(err, checkpoint.ErrCorrupt) {
		m.opts.Logger.Warn("old checkpoints of a thread not removed", zap.String("thread", head.Thread), zap.Error(err), runtime.CauseField(err))
		return m.skipPrune(ctx, head, from)
	}
	return err
}

// PruneThread removes all but the newest checkpoints of a thread, and the
// events before them. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
// THREAD_INTERRUPTED, ETAG_MISMATCH, and those of the store.
func (m *Manager) PruneThread(ctx context.Context, req runtime.PruneRequest) (checkpoint.Head, error) {
	for {
		head, err := m.opts.Reader.Thread(ctx, req.Thread)
		if err != nil {
			return head, err
		}
		if err := checkRevision(head.Revision, req.Etag); err != nil {
			return head, err
		}
		if isActive(&head) {
			return head, runtime.Errorf(runtime.ReasonThreadBusy, "run %q of the thread is active; prune it when that has ended or waits", head.Run).
				With("activeRunId", head.Run)
		}
		to := oldestKept(&head, uint64(max(1, req.KeepCheckpoints)))
		from := min(to, max(head.FirstSeq, 1)+MaxPrunedAtOnce)
		if from <= max(head.FirstSeq, 1) {
			return head, nil
		}
		seen := head
		run, err := m.readPrunableRun(ctx, &head)
		if err == nil {
			head, err = m.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
				t.Head.Updated = seen.Updated
				return m.PutPrune(ctx, t, &run, from)
			})
		}
		switch {
		case errors.Is(err, checkpoint.ErrConflict), m.opts.Committer.IsOutdated(ctx, &seen, err): // another call was quicker
		case err != nil:
			return head, err
		case from == to:
			return head, nil
		default: // there is more
			req.Etag = 0
		}
	}
}

// readPrunableRun reads the present run of a thread. It refuses a run that replays
// the past, because a replay may need any checkpoint.
func (m *Manager) readPrunableRun(ctx context.Context, head *checkpoint.Head) (run checkpoint.Run, err error) {
	if head.Run == "" {
		return run, nil
	}
	if run, err = m.opts.Store.Run(ctx, head.Thread, head.Run); err != nil {
		return run, runtime.TranslateStoreError(err)
	}
	if head.State == checkpoint.ThreadInterrupted && run.Request.From != "" {
		return run, runtime.Errorf(runtime.ReasonThreadInterrupted, "run %q of the thread replays its past; prune it when that has ended", head.Run)
	}
	return run, nil
}

// skipPrune skips a prune that fails, until there is more to prune.
func (m *Manager) skipPrune(ctx context.Context, head checkpoint.Head, from uint64) error {
	_, err := m.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.FirstSeq, t.Head.Updated, t.Head.Due = from, head.Updated, t.Now
		return nil
	})
	return err
}

// listNeededCheckpoints lists the checkpoints that a prune keeps at any age: the present
// checkpoint, the base and the result of the run, and those of open interrupts. An id
// may be "": a thread without a run has no base. The errors are those of
// EachWaitingInterrupt.
func (m *Manager) listNeededCheckpoints(ctx context.Context, head *checkpoint.Head, run *checkpoint.Run) ([]string, error) {
	needed := []string{head.Checkpoint, run.Base, run.Result}
	err := m.opts.Reader.EachWaitingInterrupt(ctx, head.Thread, func(q *checkpoint.Interrupt) { needed = append(needed, q.Checkpoint) })
	if err != nil {
		return nil, err
	}
	return needed, nil
}

// findFirstEvent finds the event of a checkpoint, or of the next checkpoint that is in
// the log.
func (m *Manager) findFirstEvent(ctx context.Context, head *checkpoint.Head, seq uint64) (uint64, error) {
	id := fmt.Sprintf("%012x", seq)
	for after := max(head.FirstEvent, 1) - 1; ; {
		events, err := m.opts.Store.Events(ctx, head.Thread, after, query.EventPageSize)
		if err != nil {
			return 0, runtime.TranslateStoreError(err)
		}
		if len(events) == 0 {
			return head.FirstEvent, nil
		}
		for i := range events {
			if events[i].Kind == checkpoint.EventCheckpoint && events[i].Checkpoint >= id {
				return events[i].Seq, nil
			}
		}
		after = events[len(events)-1].Seq
	}
}

// MaxPrunedAtOnce is the number of checkpoints that one change removes at most,
// because other changes wait for the store meanwhile.
const MaxPrunedAtOnce = 4096

// PutPrune adds the removal of old history to a change. It keeps the checkpoints that
// interrupts and the run refer to. Errors: those of runtime.TranslateStoreError.
func (m *Manager) PutPrune(ctx context.Context, t *commit.Tx, run *checkpoint.Run, from uint64) (err error) {
	first, err := m.findFirstEvent(ctx, &t.Head, from)
	if err != nil {
		return err
	}
	if t.KeepCheckpoints, err = m.listNeededCheckpoints(ctx, &t.Head, run); err != nil {
		return err
	}
	t.DropBefore, t.Head.FirstSeq = from, from
	if first > t.Head.FirstEvent {
		t.TrimEvents, t.Head.FirstEvent = first, first
	}
	return nil
}
