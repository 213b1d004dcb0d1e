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

// CheckpointsToKeep is how many checkpoints of a thread are kept at rest, 0 = all.
func (m *Manager) CheckpointsToKeep(h *checkpoint.Head) uint64 {
	switch {
	case h.Keep > 0:
		return uint64(h.Keep)
	case h.Keep < 0:
		return 0
	}
	return m.opts.KeepCheckpoints
}

// PruneBound is the number of the oldest checkpoint that a thread's history must
// keep: those of the superstep it is in are never given up.
func (m *Manager) PruneBound(h *checkpoint.Head) uint64 { return oldestKept(h, m.CheckpointsToKeep(h)) }

func oldestKept(h *checkpoint.Head, keep uint64) uint64 {
	if keep == 0 || h.Seq < keep {
		return 0
	}
	return min(h.Seq+1-keep, pregel.CheckpointSeq(h.Checkpoint))
}

// PruneTime is when a thread's history shall be cut off, zero = it need not be. A
// little more than what is kept is left alone, or every run would have to be
// followed by it; and followers of the thread have time to catch up.
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

// PruneRested cuts off the history of a thread in which nothing is going on: old
// checkpoints, and the events before the ones that are left. What interrupts and
// the thread's run refer to stays.
func (m *Manager) PruneRested(ctx context.Context, head checkpoint.Head) error {
	from := min(m.PruneBound(&head), max(head.FirstSeq, 1)+MaxPrunedAtOnce)
	_, err := m.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.FirstSeq = from
		t.Head.Updated, t.Head.Due = head.Updated, t.Now // what else is due is found at the next look
		var run checkpoint.Run
		if head.Run != "" {
			var err error
			if run, err = m.opts.Store.Run(ctx, head.Thread, head.Run); err != nil {
				return runtime.TranslateStoreError(err)
			}
		}
		if head.State == checkpoint.ThreadInterrupted && run.Request.From != "" {
			return nil // it goes through the past, and the time for this is when it is through
		}
		return m.PutPrune(ctx, t, &run, from)
	})
	if errors.Is(err, checkpoint.ErrCorrupt) {
		m.opts.Logger.Warn("old checkpoints of a thread not removed", zap.String("thread", head.Thread), zap.Error(err), runtime.CauseField(err))
		return m.skipPrune(ctx, head, from)
	}
	return err
}

// PruneThread removes all but the newest checkpoints of a thread, and what led
// to those that are gone. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
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

// readPrunableRun reads the run that a thread is in, and refuses one that replays the
// past: it may need any of it.
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

// listNeededCheckpoints lists checkpoints that are needed whatever their age.
func (m *Manager) listNeededCheckpoints(ctx context.Context, head *checkpoint.Head, run *checkpoint.Run) ([]string, error) {
	spare := []string{head.Checkpoint, run.Base, run.Result}
	err := m.opts.Reader.EachOpenInterrupt(ctx, head.Thread, func(q *checkpoint.Interrupt) { spare = append(spare, q.Checkpoint) })
	return spare, err
}

// findFirstEvent finds the event of a checkpoint, or of the next one that
// is in the log.
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

// MaxPrunedAtOnce is how many checkpoints one change cuts off at most: others wait
// for the store meanwhile.
const MaxPrunedAtOnce = 4096

// PutPrune puts the end of a history into a change. What interrupts and the run
// refer to stays.
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
