package engine

import (
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
	"github.com/graphd-dev/graphd/internal/runtime/threads"
)

// pruneLive prunes the history of a live run: what is older than
// Options.PruneDelay, so that followers had time to read, and only when there is
// twice as much as is kept. A run through the past is left alone. When it fails the
// run goes on; there will be another time.
func (l *loop) pruneLive() {
	s := l.session
	e := s.engine
	now := e.uptime()
	if l.pruneMark.At != 0 && now-l.pruneMark.At < e.opts.PruneDelay && !l.pruneMark.HasMore {
		return
	}
	if !l.level.isRoot || l.run.Request.From != "" {
		return
	}
	head := s.currentHead()
	if l.pruneMark.At == 0 {
		l.pruneMark = scheduler.PruneMark{At: now, Seq: head.Seq}
		return
	}
	keep := e.threads.CheckpointsToKeep(&head)
	before := min(e.threads.PruneBound(&head), l.pruneMark.Seq)
	if keep > 0 && before > max(head.FirstSeq, 1)+keep {
		if err := l.pruneBefore(before); err != nil && !errors.Is(err, errLeaseLost) {
			s.log.Warn("history not cut off", zap.Error(err), runtime.CauseField(err))
			l.pruneMark.HasMore = false
		}
	} else {
		l.pruneMark.HasMore = false
	}
	if !l.pruneMark.HasMore {
		l.pruneMark = scheduler.PruneMark{At: now, Seq: head.Seq}
	}
}

// pruneBefore removes checkpoints before a number, and the events before those left.
func (l *loop) pruneBefore(before uint64) error {
	s := l.session
	_, err := s.commitForCaller(s.storeCtx, func(t *commit.Tx) error {
		from := min(before, max(t.Head.FirstSeq, 1)+threads.MaxPrunedAtOnce)
		l.pruneMark.HasMore = from < before
		t.Head.Updated = s.head.Updated
		return s.engine.threads.PutPrune(s.storeCtx, t, l.run, from)
	})
	return err
}
