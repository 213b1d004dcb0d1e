package webhooks

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// A webhook of a request that begins a run, or goes on with one, is kept before. The request that the
// thread remembers says whether the run has begun, which one it is, and after which event.

// Bounds of how a webhook waits for its run.
const (
	// beginTimeout bounds the call that begins the run.
	beginTimeout = 2 * time.Minute
	// beginGrace is how long a webhook is kept whose run has not begun: the server has died, or a
	// change of unknown outcome was not made. It is much longer than beginTimeout.
	beginGrace = 10 * time.Minute
	// beginLook is when the webhook is looked at whose call has not looked itself.
	beginLook = 15 * time.Second
)

// Request is a request that begins a run, or goes on with one, and wants to be told of its stop.
type Request struct {
	Thread string // with the tenant
	ID     string
	Digest string // of its content
	URL    string
	Field  string // of the URL, for errors
}

// BeginRun keeps the webhook of a request, and calls begin, which begins the run. The webhook of a run
// that is refused is dropped. Errors: those of AddWebhook, REQUEST_ID_CONFLICT, and those of begin.
func (k *Keeper) BeginRun(ctx context.Context, r *Request, begin func(ctx context.Context) (*runtime.Started, error)) (*runtime.Started, error) {
	if err := k.checkURL(r.Field, r.URL); err != nil {
		return nil, err
	}
	if err := k.opts.Store.SyncClock(ctx); err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	token := rand.Text()
	if err := k.addRequested(ctx, r, token); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	started, err := begin(bounded)
	ctx = context.WithoutCancel(ctx) // what was decided is kept, also when the client has left
	switch {
	case err != nil && isRefused(err):
		k.dropRefused(ctx, r, token)
		return nil, err
	case err != nil:
		return nil, err // the run may begin yet; the next look finds out
	}
	return started, k.lookAtStarted(ctx, r, started)
}

// isRefused reports whether an error says that the run has not begun.
func isRefused(err error) bool {
	var refusal *runtime.Error
	return errors.As(err, &refusal) && !refusal.IsStoreFault()
}

// addRequested keeps the webhook of a request. One that is kept already waits for its run anew.
func (k *Keeper) addRequested(ctx context.Context, r *Request, token string) error {
	_, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (made checkpoint.Head, err error) {
		*head, err = k.opts.Store.Head(ctx, threadName(r.Thread, r.ID))
		switch {
		case errors.Is(err, checkpoint.ErrThreadNotFound):
			leave, err := k.admitMore(ctx, r.Thread)
			if err != nil {
				return made, err
			}
			defer leave()
			return k.putRequested(ctx, r, func(t *commit.Tx) {
				setLabel(t, keyAsked, formatAsked(t.Now, token))
				t.Head.Due = t.Now.Add(beginLook)
			})
		case err != nil:
			return made, runtime.TranslateStoreError(err)
		}
		return k.opts.Committer.TryChange(ctx, *head, func(t *commit.Tx) error {
			return k.askAgain(ctx, t, r, token)
		})
	})
	return err
}

// putRequested makes the webhook of a request.
func (k *Keeper) putRequested(ctx context.Context, r *Request, change func(t *commit.Tx)) (checkpoint.Head, error) {
	return k.opts.Committer.TryChange(ctx, k.newHead(threadName(r.Thread, r.ID)), func(t *commit.Tx) error {
		change(t)
		return putHook(t, &hook{Thread: r.Thread, ID: r.ID, URL: r.URL, Digest: r.Digest})
	})
}

// askAgain has a webhook that is kept wait for its run anew, unless that has begun.
func (k *Keeper) askAgain(ctx context.Context, t *commit.Tx, r *Request, token string) error {
	w, err := k.readHook(ctx, &t.Head)
	switch {
	case err != nil:
		return runtime.TranslateStoreError(err)
	case w.Digest != r.Digest || w.URL != r.URL:
		return runtime.Errorf(runtime.ReasonRequestIDConflict, "request id %q was used for another webhook", r.ID).With("requestId", r.ID)
	case w.Run != "":
		return commit.ErrNoChange
	}
	setLabel(t, keyAsked, formatAsked(t.Now, token))
	return nil
}

func formatAsked(now time.Time, token string) string {
	return now.UTC().Format(time.RFC3339Nano) + " " + token
}

// readAsked returns when a request has come last, and which call it was.
func readAsked(head *checkpoint.Head) (at time.Time, token string) {
	text, token, _ := strings.Cut(head.Metadata[keyAsked], " ")
	at, _ = time.Parse(time.RFC3339Nano, text) // without one it is long ago
	return at, token
}

// dropRefused drops the webhook of a run that was refused, unless a repeat of the request has come
// since. One that can't be dropped now is dropped when its time is over.
func (k *Keeper) dropRefused(ctx context.Context, r *Request, token string) {
	_, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (next checkpoint.Head, err error) {
		if *head, err = k.opts.Store.Head(ctx, threadName(r.Thread, r.ID)); err != nil {
			return next, err
		}
		if _, last := readAsked(head); last != token || head.Metadata[keyRun] != "" {
			return next, nil
		}
		return k.opts.Committer.TryChange(ctx, *head, func(t *commit.Tx) error {
			t.Delete = true
			return nil
		})
	})
	if err != nil && !errors.Is(err, checkpoint.ErrThreadNotFound) {
		k.opts.Logger.Debug("the webhook of a refused run is left to the next look", zap.Error(err))
	}
}

// lookAtStarted looks at the webhook of a run that has begun. Errors: those of the store, where the
// thread does not remember the request: an answer that another one has given before.
func (k *Keeper) lookAtStarted(ctx context.Context, r *Request, started *runtime.Started) error {
	name := threadName(r.Thread, r.ID)
	k.local.add(r.Thread, started.Run.ID, name)
	isRemembered := !started.IsAttached
	_, err := commit.RetryOnConflict(ctx, k.opts.Committer, func(head *checkpoint.Head) (_ struct{}, err error) {
		w := &hook{Thread: r.Thread, ID: r.ID, URL: r.URL, Digest: r.Digest}
		isFound, err := k.findRun(ctx, w)
		if err != nil {
			return struct{}{}, err
		}
		if isRemembered = isRemembered || isFound; !isFound {
			w.Run, w.After = started.Run.ID, chooseAfter(started)
		}
		*head, err = k.opts.Store.Head(ctx, name)
		if errors.Is(err, checkpoint.ErrThreadNotFound) { // a repeat of the request was refused meanwhile
			*head, err = k.putRequested(ctx, r, w.setRun)
		}
		if err != nil || isClaimed(head) {
			return struct{}{}, err
		}
		return struct{}{}, k.lookAtRun(ctx, *head, w)
	})
	if err != nil && isRemembered {
		k.opts.Logger.Debug("the webhook of a run is left to the next look", zap.Error(err))
		return nil
	}
	return runtime.TranslateStoreError(err)
}

// chooseAfter returns the event after which a stop counts for an answer that another request has given
// before. The run may have stopped since, or still wait for the answer to take effect.
func chooseAfter(started *runtime.Started) uint64 {
	if started.Head.Retractable > 0 {
		return started.After
	}
	return 0
}

// findRun finds the run of a webhook, and reports whether it has begun. Errors: those of the store.
func (k *Keeper) findRun(ctx context.Context, w *hook) (isBegun bool, err error) {
	if w.Run != "" {
		return true, nil
	}
	begun, err := k.opts.Store.Request(ctx, w.Thread, w.ID)
	switch {
	case errors.Is(err, checkpoint.ErrRequestNotFound), errors.Is(err, checkpoint.ErrThreadNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	w.Run, w.After = begun.Run, begun.Event
	return true, nil
}

// awaitBegin puts the next look at a webhook off whose run has not begun, or drops it.
func (k *Keeper) awaitBegin(ctx context.Context, head checkpoint.Head) error {
	if asked, _ := readAsked(&head); head.Now.Sub(asked) > beginGrace {
		return k.deleteWebhook(ctx, head)
	}
	_, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Due = t.Now.Add(nextLook(&head))
		return nil
	})
	return err
}
