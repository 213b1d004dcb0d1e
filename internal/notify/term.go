package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// term is the time in which this server holds the place of the endpoint.
type term struct {
	*Notifier
	window   *window
	progress *progress // of the goroutine that follows
	held     time.Time // when the change that has held the place last began
	cancel   context.CancelCauseFunc
	tasks    sync.WaitGroup
}

// errPanicked ends a term; the next one begins where the place is.
var errPanicked = errors.New("sending panicked")

// endPanicked ends the term after a panic.
func (t *term) endPanicked(p *contain.PanicError) {
	contain.LogPanic(t.log, "sending to an endpoint panicked")(p)
	t.cancel(errPanicked)
}

// followChanges adds the changes after a place to the window, as there is room, and has their
// events sent.
func (t *term) followChanges(ctx context.Context, after uint64) {
	source := t.opts.Follow(t.opts.Endpoint.Tenant, after)
	defer source.Close()
	whole := t.window.currentPlace().Whole
	for {
		list, err := source.Next(ctx)
		if err != nil {
			t.cancel(err)
			return
		}
		t.progress.whole = whole // what the list has may have been left out before
		if at := source.WholeUntil(); !at.IsZero() {
			whole = at
		}
		for i, q := range list {
			p := Place{Change: q.Change, Whole: t.progress.whole}
			if i == len(list)-1 {
				p.Whole = whole
			}
			if !t.deliverQuestion(ctx, q, p) {
				return
			}
		}
	}
}

// deliverQuestion has the unsent events of a question sent. p is the place behind them. It reports
// whether the term goes on.
func (t *term) deliverQuestion(ctx context.Context, q *checkpoint.Interrupt, p Place) bool {
	d := &delivery{place: p, question: questionID{q.Thread, q.ID}, events: t.listUnsent(q), done: make(chan struct{})}
	if len(d.events) == 0 {
		t.window.addDelivery(d)
		return true
	}
	select {
	case t.window.room <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	t.window.addDelivery(d)
	t.tasks.Go(contain.Func(func() { t.sendAll(ctx, d) }, t.endPanicked))
	return true
}

func (t *term) listUnsent(q *checkpoint.Interrupt) (events []Event) {
	if !t.opts.Endpoint.wantsQuestion(q) {
		return nil
	}
	entries, err := t.progress.takeUnsent(q)
	if err != nil {
		t.log.Error("the trail of a question is damaged; what follows is not sent",
			zap.String("thread", q.Thread), zap.String("question", q.ID), zap.Error(err))
	}
	for i := range entries {
		if t.opts.Endpoint.wantsEntry(&entries[i]) {
			events = append(events, newEvent(q, entries[i]))
		}
	}
	return events
}

// keepPlace stores the place as it moves, and holds it, until the term ends. It ends the term
// before another server may take the place.
func (t *term) keepPlace(ctx context.Context) {
	saved, held := t.window.currentPlace(), t.held
	tick := time.NewTicker(min(saveInterval, t.opts.Hold/6))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p := t.place()
		if p == saved && time.Since(held) < t.opts.Hold/3 {
			continue
		}
		began := time.Now()
		err := t.savePlace(ctx, p)
		switch {
		case err == nil:
			saved, held = p, began
		case errors.Is(err, ErrHeld), time.Since(held) > t.opts.Hold/2:
			t.cancel(err)
			return
		}
	}
}

// saveInterval is the shortest time between two changes of a stored place.
const saveInterval = time.Second

// savePlace stores the place. What takes longer would come too late.
func (t *term) savePlace(ctx context.Context, p Place) error {
	ctx, cancel := context.WithTimeout(ctx, t.opts.Hold/4)
	defer cancel()
	return t.opts.Keeper.SavePlace(ctx, p)
}

func (t *term) place() Place {
	p := t.window.currentPlace()
	p.IsDead = t.currentState() == StateDead
	return p
}

// releasePlace leaves the place to the next server.
func (t *term) releasePlace(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(releaseTime, t.opts.Hold/4))
	defer cancel()
	if err := t.opts.Keeper.ReleasePlace(ctx, t.place()); err != nil && !errors.Is(err, ErrHeld) {
		t.log.Warn("what was sent last is sent again: the place of the endpoint is not stored", zap.Error(err))
	}
}

const releaseTime = 2 * time.Second

// sendAll sends the events of a delivery, one after the other, after those before of the same
// question.
func (t *term) sendAll(ctx context.Context, d *delivery) {
	if d.before != nil {
		select {
		case <-d.before.done:
		case <-ctx.Done():
			return
		}
		d.before = nil // its events may go
	}
	for i := range d.events {
		if !t.sendEvent(ctx, &d.events[i]) {
			return
		}
	}
	t.window.finishDelivery(d)
}

// Bounds of the attempts to send an event.
const (
	// Patience is how old an entry is when its event is given up.
	Patience = 72 * time.Hour
	// leastAttempts are made of each event, however old it is.
	leastAttempts = 8
)

// retryPolicy has the delays between the attempts to send an event: 1 s … 1 h.
func retryPolicy() backoff.Policy {
	return backoff.Policy{First: time.Second, Max: time.Hour, Jitter: time.Second}
}

// sendEvent sends an event until the endpoint takes it, or it is given up. It reports whether the
// term goes on.
func (t *term) sendEvent(ctx context.Context, e *Event) bool {
	for attempt := 1; ; attempt++ {
		err := t.opts.Sender.SendEvent(ctx, e)
		switch {
		case err == nil:
			t.noteSent()
			return true
		case ctx.Err() != nil:
			return false
		case errors.Is(err, ErrGone):
			t.switchOff()
			return false
		}
		t.noteFailure(err)
		if attempt >= leastAttempts && t.opts.Now().Sub(e.Entry.Time) > Patience {
			t.giveUp(e, err)
			return true
		}
		delay := retryPolicy().Delay(attempt)
		if backoff.Sleep(ctx, delay+drawJitter(delay)) != nil {
			return false
		}
	}
}

// drawJitter returns a part of a delay, so that events do not come back all at once.
func drawJitter(delay time.Duration) time.Duration { return rand.N(delay/8 + 1) }

// switchOff ends the sending: the endpoint has said that it is gone.
func (t *term) switchOff() {
	t.setState(StateOff)
	t.log.Error("the endpoint says that it is gone (410); nothing is sent to it until the server starts again")
	t.cancel(ErrGone)
}

// giveUp goes on without an event.
func (t *term) giveUp(e *Event, err error) {
	t.opts.Observer.CountWebhookEvent(t.Name(), GivenUp)
	t.setState(StateDead)
	t.log.Error("an event is given up; later ones are tried", zap.String("event", e.ID), zap.Error(err))
}
