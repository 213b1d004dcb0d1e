package ownership

import (
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/runtime/threads"
)

// historyPruner prunes the history of a live run. It belongs to the goroutine that drives
// the run.
type historyPruner struct {
	thread  *heldThread
	commits *leaseCommitter
	mark    capacity.PruneMark // facts of the last prune
}

// PruneLive removes the checkpoints of a live run that are older than
// Options.PruneDelay, so that followers had time to read. It does so only when there is
// twice as much as is kept. When it fails the run goes on, and a later call prunes.
func (h *historyPruner) PruneLive(run *checkpoint.Run) {
	opts := h.thread.opts
	now := opts.Uptime()
	if h.mark.At != 0 && now-h.mark.At < opts.PruneDelay && !h.mark.HasMore {
		return
	}
	head := h.commits.currentHead()
	if h.mark.At == 0 {
		h.mark = capacity.PruneMark{At: now, Seq: head.Seq}
		return
	}
	keep := opts.Pruner.CheckpointsToKeep(&head)
	before := min(opts.Pruner.PruneBound(&head), h.mark.Seq)
	if keep > 0 && before > max(head.FirstSeq, 1)+keep {
		if err := h.pruneBefore(before, run); err != nil && !errors.Is(err, superstep.ErrLeaseLost) {
			h.thread.log.Warn("history not cut off", zap.Error(err), runtime.CauseField(err))
			h.mark.HasMore = false
		}
	} else {
		h.mark.HasMore = false
	}
	if !h.mark.HasMore {
		h.mark = capacity.PruneMark{At: now, Seq: head.Seq}
	}
}

// pruneBefore removes checkpoints before a number, and the events before those left.
func (h *historyPruner) pruneBefore(before uint64, run *checkpoint.Run) error {
	ctx := h.commits.stop.storeCtx
	_, err := h.commits.commitForCaller(ctx, func(t *commit.Tx) error {
		from := min(before, max(t.Head.FirstSeq, 1)+threads.MaxPrunedAtOnce)
		h.mark.HasMore = from < before
		t.Head.Updated = h.commits.head.Updated
		return h.thread.opts.Pruner.PutPrune(ctx, t, run, from)
	})
	return err
}
