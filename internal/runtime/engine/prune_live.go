package engine

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// pruneMark is what a live run knows of its last prune.
type pruneMark struct {
	at      time.Duration // Engine.uptime, 0 = not yet
	seq     uint64        // the thread's last checkpoint then
	hasMore bool          // there was more to cut off than is cut off at once
}

// pruneLive prunes the history of a live run: what is older than
// Options.PruneDelay, so that followers had time to read, and only when there is
// twice as much as is kept. A run through the past is left alone. When it fails the
// run goes on; there will be another time.
func (l *loop) pruneLive() {
	s := l.session
	e := s.engine
	now := e.uptime()
	if l.pruneMark.at != 0 && now-l.pruneMark.at < e.opts.PruneDelay && !l.pruneMark.hasMore {
		return
	}
	if !l.level.isRoot || l.run.Request.From != "" {
		return
	}
	head := s.currentHead()
	if l.pruneMark.at == 0 {
		l.pruneMark = pruneMark{at: now, seq: head.Seq}
		return
	}
	keep := e.checkpointsToKeep(&head)
	before := min(e.pruneBound(&head), l.pruneMark.seq)
	if keep > 0 && before > max(head.FirstSeq, 1)+keep {
		if err := l.pruneBefore(before); err != nil && !errors.Is(err, errLeaseLost) {
			s.log.Warn("history not cut off", zap.Error(err), causeField(err))
			l.pruneMark.hasMore = false
		}
	} else {
		l.pruneMark.hasMore = false
	}
	if !l.pruneMark.hasMore {
		l.pruneMark = pruneMark{at: now, seq: head.Seq}
	}
}

// pruneBefore removes checkpoints before a number, and the events before those left.
func (l *loop) pruneBefore(before uint64) error {
	s := l.session
	_, err := s.commitForCaller(s.storeCtx, func(t *commit.Tx) error {
		from := min(before, max(t.Head.FirstSeq, 1)+maxPrunedAtOnce)
		l.pruneMark.hasMore = from < before
		t.Head.Updated = s.head.Updated
		return s.engine.putPrune(s.storeCtx, t, l.run, from)
	})
	return err
}

// maxPrunedAtOnce is how many checkpoints one change cuts off at most: others wait
// for the store meanwhile.
const maxPrunedAtOnce = 4096

// putPrune puts the end of a history into a change. What interrupts and the run
// refer to stays.
func (e *Engine) putPrune(ctx context.Context, t *commit.Tx, run *checkpoint.Run, from uint64) (err error) {
	first, err := e.findFirstEvent(ctx, &t.Head, from)
	if err != nil {
		return err
	}
	if t.KeepCheckpoints, err = e.listNeededCheckpoints(ctx, &t.Head, run); err != nil {
		return err
	}
	t.DropBefore, t.Head.FirstSeq = from, from
	if first > t.Head.FirstEvent {
		t.TrimEvents, t.Head.FirstEvent = first, first
	}
	return nil
}
