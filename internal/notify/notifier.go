package notify

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/contain"
)

// Options are the endpoint of a Notifier and its collaborators.
type Options struct {
	Endpoint Endpoint
	Keeper   Keeper
	Hold     time.Duration // how long a server that is silent keeps its place
	Sender   Sender
	// Follow begins to read the changes of the questions of a tenant, "" = of all, after a change.
	Follow   func(tenant string, after uint64) Source
	Now      func() time.Time // the store's clock
	Observer Observer
	Logger   *zap.Logger
}

// Notifier sends the events of one endpoint, while no other server does.
type Notifier struct {
	opts Options
	log  *zap.Logger

	current atomic.Pointer[window] // nil = another server sends
	mu      sync.Mutex
	state   State
	// isFailing says that no event was taken since one has failed.
	isFailing bool
}

// New makes a Notifier.
func New(opts Options) *Notifier {
	return &Notifier{opts: opts, log: opts.Logger.With(zap.String("endpoint", opts.Endpoint.Name))}
}

// Name returns the name of the endpoint.
func (n *Notifier) Name() string { return n.opts.Endpoint.Name }

// OldestUnsent returns the time of the oldest entry that this server has to send, zero = there is
// none.
func (n *Notifier) OldestUnsent() time.Time {
	if w := n.current.Load(); w != nil {
		return w.oldestUnsent()
	}
	return time.Time{}
}

// Run sends events until ctx ends, or the endpoint is gone.
func (n *Notifier) Run(ctx context.Context) {
	n.setState(StateLive)
	retry := backoff.Policy{First: n.opts.Hold / 16, Max: n.opts.Hold, Jitter: n.opts.Hold / 16}
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		place, err := n.opts.Keeper.TakePlace(ctx)
		if err == nil {
			failures = 0
			err = n.sendWhileHeld(ctx, place, began)
		}
		wait := n.opts.Hold / 3
		switch {
		case errors.Is(err, ErrGone):
			return
		case errors.Is(err, ErrHeld), ctx.Err() != nil:
		default:
			failures++
			wait = retry.Delay(failures)
			n.log.Warn("no events are sent until the store answers", zap.Error(err))
		}
		_ = backoff.Sleep(ctx, wait) // the loop looks at ctx
	}
}

// sendWhileHeld sends the events after a place while this server holds it. held is when it began
// to take it.
func (n *Notifier) sendWhileHeld(ctx context.Context, p Place, held time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &term{Notifier: n, window: newWindow(p), progress: newProgress(p.Whole), held: held, cancel: cancel}
	n.startTerm(t.window, p.IsDead)
	n.log.Debug("this server sends to the endpoint")
	t.tasks.Go(contain.Func(func() { t.keepPlace(ctx) }, t.endPanicked))
	t.tasks.Go(contain.Func(func() { t.followChanges(ctx, p.Change) }, t.endPanicked))
	<-ctx.Done()
	t.tasks.Wait()
	n.current.Store(nil)
	err := context.Cause(ctx)
	if !errors.Is(err, ErrHeld) {
		t.releasePlace(ctx)
	}
	if !errors.Is(err, ErrGone) {
		n.setState(StateLive) // the server that sends now tells what it is
	}
	return err
}

// startTerm begins to send with a window.
func (n *Notifier) startTerm(w *window, isDead bool) {
	n.current.Store(w)
	n.mu.Lock()
	n.isFailing = isDead
	n.mu.Unlock()
	if isDead {
		n.setState(StateDead)
	}
}

func (n *Notifier) setState(s State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state != s {
		n.state = s
		n.opts.Observer.SetWebhookState(n.Name(), s)
	}
}

// currentState returns the state of the endpoint.
func (n *Notifier) currentState() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// noteSent notes that the endpoint has taken an event.
func (n *Notifier) noteSent() {
	n.opts.Observer.CountWebhookEvent(n.Name(), Sent)
	n.mu.Lock()
	wasFailing := n.isFailing
	n.isFailing = false
	n.mu.Unlock()
	if wasFailing {
		n.log.Info("the endpoint takes events again")
	}
	n.setState(StateLive)
}

// noteFailure notes that the endpoint has not taken an event, and logs the first of a row.
func (n *Notifier) noteFailure(err error) {
	n.opts.Observer.CountWebhookEvent(n.Name(), Failed)
	n.mu.Lock()
	isFirst := !n.isFailing
	n.isFailing = true
	n.mu.Unlock()
	if isFirst {
		n.log.Warn("the endpoint does not take an event; it is sent again", zap.Error(err))
	}
}
