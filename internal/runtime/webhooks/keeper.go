package webhooks

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Bounds of attempts.
const (
	// MaxAttempts is how often a webhook is called before it is given up.
	MaxAttempts = 12
	// SendTimeout bounds one attempt. No server begins another one within it.
	SendTimeout = 12 * time.Second
	// longestLook is how long a webhook looks at a run that has not stopped at most.
	longestLook = time.Minute
	// longestSlotWait is how long a webhook waits at most between two looks for a slot.
	longestSlotWait = 15 * time.Second
)

// retryPauses are the pauses between attempts: some three hours for all of them.
func retryPauses() backoff.Policy {
	return backoff.Policy{First: SendTimeout + time.Second, Max: 30 * time.Minute}
}

// Options are the collaborators and limits of a Keeper.
type Options struct {
	Store     *commit.StoreClient
	Committer *commit.Committer
	Limit     int // webhooks of a tenant that have not been called
	// RunUntilDrain runs a function in the background, unless a drain has begun. Its context ends
	// when one begins.
	RunUntilDrain func(f func(ctx context.Context))
	// WakeScheduler makes the scheduler look for due threads.
	WakeScheduler func()
	Logger        *zap.Logger
}

// Keeper keeps webhooks, and calls those whose runs have stopped.
type Keeper struct {
	opts     Options
	sender   runtime.RunStopSender // nil = this server calls none
	slots    sendSlots
	local    watchedRuns
	arrivals arrivals
}

// New makes a Keeper.
func New(opts Options) *Keeper {
	return &Keeper{opts: opts}
}

// SetSender sets what calls webhooks. It is called before the first call is served.
func (k *Keeper) SetSender(s runtime.RunStopSender) { k.sender = s }

// AddWebhook keeps a webhook until it was called. The same ID again is the same one. The errors are
// *Error: FEATURE_DISABLED, INVALID_FIELD, TOO_MANY_REQUESTS, and those of the store.
func (k *Keeper) AddWebhook(ctx context.Context, w runtime.RunWebhook) error {
	if err := k.checkURL("url", w.URL); err != nil {
		return err
	}
	if _, err := k.opts.Store.Run(ctx, w.Thread, w.Run); err != nil {
		return missingRunError(&w, err)
	}
	leave, err := k.admitMore(ctx, w.Thread)
	if err != nil {
		return err
	}
	defer leave()
	if err := k.opts.Store.SyncClock(ctx); err != nil {
		return runtime.TranslateStoreError(err)
	}
	head := k.newHead(threadName(w.Thread, w.ID))
	k.local.add(w.Thread, w.Run, head.Thread)
	_, err = k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Due = t.Now
		return putHook(t, &hook{Thread: w.Thread, Run: w.Run, ID: w.ID, After: w.After, URL: w.URL})
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil // it is there
	}
	k.opts.WakeScheduler()
	return err
}

// checkURL refuses a URL that is not called. The errors are *Error: FEATURE_DISABLED, INVALID_FIELD.
func (k *Keeper) checkURL(field, url string) error {
	if k.sender == nil {
		return runtime.Errorf(runtime.ReasonFeatureDisabled, "the server calls no webhooks of runs: it needs --langgraph").With("feature", "webhooks of runs")
	}
	return k.sender.CheckURL(field, url)
}

// newHead drafts the thread of a webhook.
func (k *Keeper) newHead(name string) checkpoint.Head {
	return checkpoint.Head{Thread: name, LogID: uuid.NewString()[:8], Created: k.opts.Store.CurrentTime(), State: checkpoint.ThreadIdle, Keep: checkpoint.KeepAll}
}

// putHook puts a webhook into the change that makes its thread.
func putHook(t *commit.Tx, w *hook) error {
	cp, err := newCheckpoint(w, t.Now)
	if err != nil {
		return err
	}
	t.Checkpoints, t.Head.Checkpoint, t.Head.Seq = append(t.Checkpoints, cp), cp.ID, cp.Seq
	return nil
}

// missingRunError returns the error of a webhook whose run was not found.
func missingRunError(w *runtime.RunWebhook, err error) error {
	if errors.Is(err, checkpoint.ErrRunNotFound) {
		return runtime.Errorf(runtime.ReasonRunNotFound, "thread %q has no run %q", tenant.ClientName(w.Thread), w.Run).
			With("threadId", tenant.ClientName(w.Thread)).With("runId", w.Run)
	}
	return runtime.TranslateThreadError(w.Thread, err)
}

// admitMore refuses a webhook beyond the limit of the tenant. leave must be called when the
// webhook is kept, or is not to be kept any more: this server counts it until then, beside those
// in the store. Other servers on the store may exceed the limit together by what they add at once.
func (k *Keeper) admitMore(ctx context.Context, thread string) (leave func(), err error) {
	owner, _ := tenant.Split(thread)
	arriving, leave := k.arrivals.addWebhook(owner)
	n, err := k.opts.Store.CountThreads(ctx, hiddenTenant(owner), k.opts.Limit)
	switch {
	case err != nil:
		leave()
		return nil, runtime.TranslateStoreError(err)
	case n+arriving > k.opts.Limit:
		leave()
		return nil, runtime.Errorf(runtime.ReasonTooManyRequests, "%d webhooks of runs wait to be called or are being kept, as many as may (--run-webhooks)", n+arriving-1).
			WithLimit("run-webhooks", int64(k.opts.Limit), int64(n+arriving))
	}
	return leave, nil
}

// NoteStop has the webhooks of a run of this server looked at when the run stops.
func (k *Keeper) NoteStop(run *checkpoint.Run) {
	if !isStopped(run.State) || !k.local.has(run.Thread, run.ID) {
		return
	}
	k.opts.RunUntilDrain(func(ctx context.Context) {
		for _, thread := range k.local.list(run.Thread, run.ID) {
			head, err := k.opts.Store.Head(ctx, thread)
			if err == nil {
				err = k.ProcessDue(ctx, head)
			}
			if err != nil && !errors.Is(err, checkpoint.ErrThreadNotFound) && !errors.Is(err, checkpoint.ErrConflict) {
				k.opts.Logger.Debug("a webhook is left to the next look", zap.Error(err))
			}
		}
	})
}

func isStopped(s checkpoint.RunState) bool { return s.Terminal() || s == checkpoint.RunInterrupted }

// ProcessDue looks at a webhook that is due: it calls one whose run has stopped, and puts the next
// look off. Errors: those of the store.
func (k *Keeper) ProcessDue(ctx context.Context, head checkpoint.Head) error {
	if isClaimed(&head) {
		return nil
	}
	w, err := k.readHook(ctx, &head)
	switch {
	case errors.Is(err, checkpoint.ErrCorrupt), errors.Is(err, checkpoint.ErrCheckpointNotFound):
		return k.dropBroken(ctx, head, err)
	case err != nil:
		return err
	}
	isBegun, err := k.findRun(ctx, w)
	switch {
	case err != nil:
		return err
	case !isBegun:
		return k.awaitBegin(ctx, head)
	}
	return k.lookAtRun(ctx, head, w)
}

// lookAtRun calls a webhook if its run has stopped, and puts the next look off. Errors: those of the
// store.
func (k *Keeper) lookAtRun(ctx context.Context, head checkpoint.Head, w *hook) error {
	run, err := k.opts.Store.Run(ctx, w.Thread, w.Run)
	switch {
	case errors.Is(err, checkpoint.ErrThreadNotFound), errors.Is(err, checkpoint.ErrRunNotFound):
		return k.dropOrphan(ctx, head, w)
	case err != nil:
		return err
	case !isStopped(run.State) || run.LastEvent <= w.After:
		return k.putOff(ctx, head, w, nextLook(&head))
	case k.sender == nil:
		return k.putOff(ctx, head, w, longestLook) // another server calls it
	}
	return k.claimSend(ctx, head, w, run)
}

// isClaimed reports whether an attempt is under way, or the next one is not due yet: the thread was
// listed as due before.
func isClaimed(head *checkpoint.Head) bool {
	return countAttempts(head) > 0 && head.Due.After(head.Now)
}

// nextLook returns when to look again at a run that has not stopped: the later, the longer it runs.
func nextLook(head *checkpoint.Head) time.Duration {
	return min(max(head.Now.Sub(head.Created)/4, time.Second), longestLook)
}

// nextSlotLook returns when to look for a slot again: the later, the longer the run has stopped, so
// that many webhooks of a host that hangs change the store rarely.
func nextSlotLook(head *checkpoint.Head, stopped *checkpoint.Run) time.Duration {
	return min(max(head.Now.Sub(stopped.Updated)/4, time.Second), longestSlotWait)
}

// putOff puts the next look off, and keeps what this one has found.
func (k *Keeper) putOff(ctx context.Context, head checkpoint.Head, w *hook, pause time.Duration) error {
	_, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		w.setRun(t)
		t.Head.Due = t.Now.Add(pause)
		return nil
	})
	return err
}

// dropBroken drops a webhook that can't be read, unless another server has dropped it meanwhile.
func (k *Keeper) dropBroken(ctx context.Context, head checkpoint.Head, cause error) error {
	err := k.deleteWebhook(ctx, head)
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil
	}
	k.opts.Logger.Error("the webhook of a run is given up", zap.Error(cause))
	return err
}

// dropOrphan drops a webhook whose run was deleted.
func (k *Keeper) dropOrphan(ctx context.Context, head checkpoint.Head, w *hook) error {
	k.local.remove(w.Thread, w.Run, head.Thread)
	return k.deleteWebhook(ctx, head)
}

func (k *Keeper) deleteWebhook(ctx context.Context, head checkpoint.Head) error {
	_, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Delete = true
		return nil
	})
	return err
}

// claimSend calls a webhook in the background, if a slot is free. Before, it puts the next attempt
// off, so that no other server calls it meanwhile, and one does if this one dies.
func (k *Keeper) claimSend(ctx context.Context, head checkpoint.Head, w *hook, run checkpoint.Run) error {
	owner, _ := tenant.Split(w.Thread)
	to := targetOf(w.URL)
	if !k.slots.takeSlot(owner, to) {
		return k.putOff(ctx, head, w, nextSlotLook(&head, &run))
	}
	attempt := countAttempts(&head) + 1
	claimed, err := k.opts.Committer.TryChange(ctx, head, func(t *commit.Tx) error {
		w.setRun(t)
		setLabel(t, keyAttempts, strconv.Itoa(attempt))
		t.Head.Due = t.Now.Add(retryPauses().Delay(attempt))
		return nil
	})
	if err != nil {
		k.slots.freeSlot(owner, to)
		return err
	}
	stop := &runtime.RunStop{
		RunWebhook: runtime.RunWebhook{Thread: w.Thread, Run: w.Run, ID: w.ID, After: w.After, URL: w.URL}, Stopped: run, Attempt: attempt,
	}
	k.opts.RunUntilDrain(func(ctx context.Context) {
		defer k.slots.freeSlot(owner, to)
		k.sendClaimed(ctx, claimed, stop)
	})
	return nil
}

// sendClaimed makes one attempt. A webhook that has taken it, or never will, is dropped.
func (k *Keeper) sendClaimed(ctx context.Context, claimed checkpoint.Head, stop *runtime.RunStop) {
	bounded, cancel := context.WithTimeout(ctx, SendTimeout)
	defer cancel()
	err := k.sender.SendRunStop(bounded, stop)
	log := k.opts.Logger.With(zap.String("thread", tenant.ClientName(stop.Thread)), zap.String("run", stop.Run))
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return // the server goes down; another attempt is due
	case errors.Is(err, runtime.ErrWebhookRefused), stop.Attempt >= MaxAttempts:
		log.Warn("the webhook of a run is given up", zap.Error(err))
	default:
		log.Info("the webhook of a run is called again later", zap.Error(err))
		return
	}
	k.local.remove(stop.Thread, stop.Run, claimed.Thread)
	if err := k.deleteWebhook(ctx, claimed); err != nil && !errors.Is(err, checkpoint.ErrConflict) {
		log.Info("a webhook that was called is called once more", zap.Error(err))
	}
}
