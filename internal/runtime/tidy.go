package runtime

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// tidied is what a live run knows of the past that it leaves behind.
type tidied struct {
	at   time.Duration // Engine.uptime, 0 = not yet
	seq  uint64        // the thread's last checkpoint then
	left bool          // there was more to cut off than is cut off at once
}

// tidy cuts off the past of a run that does not rest: what is older than a rest
// would be, so that who follows has had the time to read, and only when there is
// twice as much as is kept. A run through the past is left alone. When it fails
// the run goes on; there will be another time.
func (l *loop) tidy() {
	s := l.session
	e := s.engine
	now := e.uptime()
	if l.past.at != 0 && now-l.past.at < e.opts.Rest && !l.past.left {
		return
	}
	if !l.level.root || l.run.Request.From != "" {
		return
	}
	head := s.current()
	if l.past.at == 0 {
		l.past = tidied{at: now, seq: head.Seq}
		return
	}
	keep := e.keeps(&head)
	before := min(e.reach(&head), l.past.seq)
	if keep > 0 && before > max(head.FirstSeq, 1)+keep {
		if err := l.endHistory(before); err != nil && !errors.Is(err, errLeaseLost) {
			s.log.Warn("history not cut off", zap.Error(err), cause(err))
			l.past.left = false
		}
	} else {
		l.past.left = false
	}
	if !l.past.left {
		l.past = tidied{at: now, seq: head.Seq}
	}
}

// endHistory removes checkpoints before a number, and the events before those left.
func (l *loop) endHistory(before uint64) error {
	s := l.session
	_, err := s.amend(s.calls, func(t *tx) error {
		from := min(before, max(t.Head.FirstSeq, 1)+cutAtOnce)
		l.past.left = from < before
		t.Head.Updated = s.head.Updated
		return s.engine.forget(s.calls, t, l.run, from)
	})
	return err
}

// cutAtOnce is how many checkpoints one change cuts off at most: others wait
// for the store meanwhile.
const cutAtOnce = 4096

// forget puts the end of a history into a change. What questions and the run
// refer to stays.
func (e *Engine) forget(ctx context.Context, t *tx, run *checkpoint.Run, from uint64) (err error) {
	first, err := e.firstEvent(ctx, &t.Head, from)
	if err != nil {
		return err
	}
	if t.Spare, err = e.spared(ctx, &t.Head, run); err != nil {
		return err
	}
	t.DropBefore, t.Head.FirstSeq = from, from
	if first > t.Head.FirstEvent {
		t.TrimEvents, t.Head.FirstEvent = first, first
	}
	return nil
}
