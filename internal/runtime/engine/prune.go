package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// maxStoredOutput is how many bytes of output stand in the record of a run.
const maxStoredOutput = 1024

// storedOutput is how a run remembers its output. A large one is part of the state:
// stored again with each run, it would soon be more than the thread itself.
func storedOutput(s *pregel.State) (output payload.JSON, at string) {
	output = s.Output()
	if len(output) <= maxStoredOutput || s.Graph().HasUntracked() {
		return output, ""
	}
	return "", s.Checkpoint().ID
}

// MemoryStoreCheckpoints is how many checkpoints a server keeps of a thread at rest
// by default when its store is memory: the last turns of a conversation.
const MemoryStoreCheckpoints = 64

// checkpointsToKeep is how many checkpoints of a thread are kept at rest, 0 = all.
func (e *Engine) checkpointsToKeep(h *checkpoint.Head) uint64 {
	switch {
	case h.Keep > 0:
		return uint64(h.Keep)
	case h.Keep < 0:
		return 0
	}
	return e.opts.KeepCheckpoints
}

// pruneBound is the number of the oldest checkpoint that a thread's history must
// keep: those of the superstep it is in are never given up.
func (e *Engine) pruneBound(h *checkpoint.Head) uint64 { return oldestKept(h, e.checkpointsToKeep(h)) }

func oldestKept(h *checkpoint.Head, keep uint64) uint64 {
	if keep == 0 || h.Seq < keep {
		return 0
	}
	return min(h.Seq+1-keep, pregel.CheckpointSeq(h.Checkpoint))
}

// pruneTime is when a thread's history shall be cut off, zero = it need not be. A
// little more than what is kept is left alone, or every run would have to be
// followed by it; and followers of the thread have time to catch up.
func (e *Engine) pruneTime(h *checkpoint.Head) time.Time {
	if h.State == checkpoint.ThreadBusy || e.pruneBound(h) <= max(h.FirstSeq, 1)+e.checkpointsToKeep(h)/4 {
		return time.Time{}
	}
	return h.Updated.Add(e.opts.PruneDelay)
}

// isPruneDue reports whether it is time to cut off a thread's history.
func (e *Engine) isPruneDue(h *checkpoint.Head) bool {
	at := e.pruneTime(h)
	return !at.IsZero() && !at.After(h.Now)
}

// pruneRested cuts off the history of a thread in which nothing is going on: old
// checkpoints, and the events before the ones that are left. What interrupts and
// the thread's run refer to stays.
func (e *Engine) pruneRested(ctx context.Context, head checkpoint.Head) error {
	from := min(e.pruneBound(&head), max(head.FirstSeq, 1)+maxPrunedAtOnce)
	_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.FirstSeq = from
		t.Head.Updated, t.Head.Due = head.Updated, t.Now // what else is due is found at the next look
		var run checkpoint.Run
		if head.Run != "" {
			var err error
			if run, err = e.store.Run(ctx, head.Thread, head.Run); err != nil {
				return runtime.TranslateStoreError(err)
			}
		}
		if head.State == checkpoint.ThreadInterrupted && run.Request.From != "" {
			return nil // it goes through the past, and the time for this is when it is through
		}
		return e.putPrune(ctx, t, &run, from)
	})
	if errors.Is(err, checkpoint.ErrCorrupt) {
		e.log.Warn("old checkpoints of a thread not removed", zap.String("thread", head.Thread), zap.Error(err), causeField(err))
		return e.skipPrune(ctx, head, from)
	}
	return err
}

// PruneThread removes all but the newest checkpoints of a thread, and what led
// to those that are gone. The errors are *Error: THREAD_NOT_FOUND, THREAD_BUSY,
// THREAD_INTERRUPTED, ETAG_MISMATCH, and those of the store.
func (e *Engine) PruneThread(ctx context.Context, req runtime.PruneRequest) (checkpoint.Head, error) {
	for {
		head, err := e.reader.Thread(ctx, req.Thread)
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
		from := min(to, max(head.FirstSeq, 1)+maxPrunedAtOnce)
		if from <= max(head.FirstSeq, 1) {
			return head, nil
		}
		seen := head
		run, err := e.readPrunableRun(ctx, &head)
		if err == nil {
			head, err = e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
				t.Head.Updated = seen.Updated
				return e.putPrune(ctx, t, &run, from)
			})
		}
		switch {
		case errors.Is(err, checkpoint.ErrConflict), e.committer.IsOutdated(ctx, &seen, err): // another call was quicker
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
func (e *Engine) readPrunableRun(ctx context.Context, head *checkpoint.Head) (run checkpoint.Run, err error) {
	if head.Run == "" {
		return run, nil
	}
	if run, err = e.store.Run(ctx, head.Thread, head.Run); err != nil {
		return run, runtime.TranslateStoreError(err)
	}
	if head.State == checkpoint.ThreadInterrupted && run.Request.From != "" {
		return run, runtime.Errorf(runtime.ReasonThreadInterrupted, "run %q of the thread replays its past; prune it when that has ended", head.Run)
	}
	return run, nil
}

// skipPrune skips a prune that fails, until there is more to prune.
func (e *Engine) skipPrune(ctx context.Context, head checkpoint.Head, from uint64) error {
	_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.FirstSeq, t.Head.Updated, t.Head.Due = from, head.Updated, t.Now
		return nil
	})
	return err
}

// listNeededCheckpoints lists checkpoints that are needed whatever their age.
func (e *Engine) listNeededCheckpoints(ctx context.Context, head *checkpoint.Head, run *checkpoint.Run) ([]string, error) {
	spare := []string{head.Checkpoint, run.Base, run.Result}
	err := e.reader.EachOpenInterrupt(ctx, head.Thread, func(q *checkpoint.Interrupt) { spare = append(spare, q.Checkpoint) })
	return spare, err
}

// findFirstEvent finds the event of a checkpoint, or of the next one that
// is in the log.
func (e *Engine) findFirstEvent(ctx context.Context, head *checkpoint.Head, seq uint64) (uint64, error) {
	id := fmt.Sprintf("%012x", seq)
	for after := max(head.FirstEvent, 1) - 1; ; {
		events, err := e.store.Events(ctx, head.Thread, after, readPageSize)
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
