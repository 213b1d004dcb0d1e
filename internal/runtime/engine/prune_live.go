package engine

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

// PruneLive prunes the history of a live run: what is older than
// Options.PruneDelay, so that followers had time to read, and only when there is
// twice as much as is kept. When it fails the run goes on; there will be another time.
func (s *session) PruneLive(run *checkpoint.Run) {
	e := s.engine
	now := e.uptime()
	if s.pruneMark.At != 0 && now-s.pruneMark.At < e.opts.PruneDelay && !s.pruneMark.HasMore {
		return
	}
	head := s.currentHead()
	if s.pruneMark.At == 0 {
		s.pruneMark = capacity.PruneMark{At: now, Seq: head.Seq}
		return
	}
	keep := e.threads.CheckpointsToKeep(&head)
	before := min(e.threads.PruneBound(&head), s.pruneMark.Seq)
	if keep > 0 && before > max(head.FirstSeq, 1)+keep {
		if err := s.pruneBefore(before, run); err != nil && !errors.Is(err, superstep.ErrLeaseLost) {
			s.log.Warn("history not cut off", zap.Error(err), runtime.CauseField(err))
			s.pruneMark.HasMore = false
		}
	} else {
		s.pruneMark.HasMore = false
	}
	if !s.pruneMark.HasMore {
		s.pruneMark = capacity.PruneMark{At: now, Seq: head.Seq}
	}
}

// pruneBefore removes checkpoints before a number, and the events before those left.
func (s *session) pruneBefore(before uint64, run *checkpoint.Run) error {
	_, err := s.commitForCaller(s.storeCtx, func(t *commit.Tx) error {
		from := min(before, max(t.Head.FirstSeq, 1)+threads.MaxPrunedAtOnce)
		s.pruneMark.HasMore = from < before
		t.Head.Updated = s.head.Updated
		return s.engine.threads.PutPrune(s.storeCtx, t, run, from)
	})
	return err
}
