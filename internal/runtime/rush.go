package runtime

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// rush runs the superstep at which a run goes on, and what follows it, in the
// change that takes the run up, if they have no effects. Where that is not so
// the loop is left as it was, to be driven in the usual way.
func (l *loop) rush(ctx context.Context, t *tx) {
	if l.session.engine.opts.Together <= 1 || l.paused() || t.Head.Cancel != nil ||
		l.run.Request.From != "" || len(l.pending.commands) > 0 ||
		l.judge(l.state, l.tasks, nil, &l.pending) != nil {
		return
	}
	began, w := time.Now(), l.arrange()
	if len(w.run) == 0 || len(w.waiting) > 0 || !l.passing(ctx, w, began) || len(w.allWaiting()) > 0 {
		return
	}
	before := *t
	state, tasks, err := l.applyQuietly(t, w)
	if err != nil {
		*t = before
		return
	}
	t.used(w)
	next := l.ahead(state, tasks)
	v := l.judge(state, tasks, w.planned(), &progress{})
	if v == nil {
		v = next.pass(ctx, t)
	}
	l.succeed(next)
	l.pending, l.revisit, l.ended = progress{}, false, v
}

// used marks the answers that a change brings and its own tasks have used.
func (t *tx) used(w *work) {
	for i := range t.Interrupts {
		q := &t.Interrupts[i]
		if q.State != checkpoint.InterruptAnswered {
			continue
		}
		for j := range w.fresh {
			if w.fresh[j].task.ID == q.Task {
				q.State, q.Accepted = checkpoint.InterruptConsumed, w.fresh[j].acceptedFor(q.ID)
				if q.Accepted != nil {
					t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: []checkpoint.Interrupt{*q}})
				}
			}
		}
	}
}
