package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// dueBatch is how many threads one look at the store takes up.
const dueBatch = 256

// wakeScheduler makes the scheduler look for due threads now.
func (e *Engine) wakeScheduler() {
	select {
	case e.schedulerWake <- struct{}{}:
	default:
	}
}

// runScheduler processes what is due: queued runs, runs without an owner, unused
// answers, and interrupts and threads that expire. What is due follows from the
// heads, so no wake-up can be lost.
func (e *Engine) runScheduler(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		woken := false
		select {
		case <-e.draining:
			return
		case <-ctx.Done():
			return
		case <-e.schedulerWake:
			woken = true
		case <-timer.C:
		}
		e.reportLiveBytes()
		if e.isPaused(timer) {
			continue
		}
		e.queueServed(ctx)
		if full := e.processGranted(ctx); full && woken || e.isPaused(timer) {
			continue
		}
		next := e.processDueOnce(ctx)
		timer.Reset(max(min(e.opts.ScanInterval, max(next, time.Millisecond)), e.storeBackoff.RemainingPause(e.uptime())))
	}
}

// isPaused reports whether the store refuses changes, and sets the timer for the
// next try.
func (e *Engine) isPaused(timer *time.Timer) bool {
	wait := e.storeBackoff.RemainingPause(e.uptime())
	if wait > 0 {
		timer.Reset(wait)
	}
	return wait > 0
}

// processGranted takes queued threads for which there is capacity. It returns true
// when all slots are taken: other due threads can wait for the next scan.
func (e *Engine) processGranted(ctx context.Context) (full bool) {
	for {
		threads, full := e.capacity.GrantWaiting(maxParallelDue)
		if len(threads) == 0 {
			return full
		}
		r := dueRound{engine: e}
		for _, thread := range e.processThreads(ctx, threads, &r) {
			e.markMaybeLeased(thread)
		}
		e.capacity.EndGrants(threads)
		if r.finishRound(); r.refusedCount.Load() > 0 {
			return false
		}
	}
}

// maxParallelDue is how many due threads are processed at the same time.
const maxParallelDue = 16

// processDueOnce looks once, and says how soon the next look is worth while.
func (e *Engine) processDueOnce(ctx context.Context) time.Duration {
	threads, next, err := e.listDue(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("cannot look for due work", zap.Error(err), runtime.CauseField(err))
		}
		return e.opts.ScanInterval
	}
	e.processDue(ctx, threads)
	if next.IsZero() || !e.capacity.HasFreeSlot() {
		return e.opts.ScanInterval
	}
	return next.Sub(e.now())
}

// processDue attends to threads that are due, and to those that were given up.
func (e *Engine) processDue(ctx context.Context, due []string) {
	r := dueRound{engine: e}
	threads := append(e.listMaybeLeased(), due...)
	switch {
	case r.isProbing(): // the first one shall not always be the same
		shuffleThreads(threads)
	case e.subscription != nil: // others look at the same moment: they shall not all begin with the same
		shuffleThreads(threads[len(threads)-len(due):])
	}
	e.processThreads(ctx, threads, &r)
	if r.isStoreFull.Load() {
		e.freeStoreSpace(ctx, due)
	}
	r.finishRound()
}

func shuffleThreads(threads []string) {
	rand.Shuffle(len(threads), func(i, j int) { threads[i], threads[j] = threads[j], threads[i] })
}

// processThreads attends to threads side by side, and waits until that is done. It
// returns those that are left because the store takes no changes.
func (e *Engine) processThreads(ctx context.Context, threads []string, r *dueRound) (left []string) {
	slots := make(chan struct{}, maxParallelDue)
	var all sync.WaitGroup
	defer all.Wait()
	for i, thread := range threads {
		if r.isOver() {
			return threads[i:]
		}
		slots <- struct{}{}
		all.Go(contain.Func(func() {
			defer func() { <-slots }()
			e.processThread(ctx, thread, r)
		}, contain.LogPanic(e.log, "the sweeper panicked")))
		if r.isProbing() {
			all.Wait()
		}
	}
	return nil
}

// minUsefulBatch is how many threads make a look at the store worth while.
const minUsefulBatch = dueBatch / 4

// listDue returns the due threads that are neither quarantined nor queued. Such
// threads must not displace others from the batch: where they take nearly all of
// it, twice as many are read.
func (e *Engine) listDue(ctx context.Context) (threads []string, next time.Time, err error) {
	most := dueBatch + e.countQuarantined() + e.capacity.CountQueued()
	for limit := dueBatch; ; limit = min(2*limit, most) {
		if p := contain.Call(func() { threads, next, err = e.store.Due(ctx, limit) }); p != nil {
			return nil, time.Time{}, p
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		all := len(threads)
		threads = slices.DeleteFunc(threads, e.isWaiting)
		if all < limit || limit == most || len(threads) >= minUsefulBatch {
			return threads, next, nil
		}
	}
}

// processThread processes one thread. If that fails for a reason that may lie in
// the thread, the thread is quarantined.
func (e *Engine) processThread(ctx context.Context, thread string, r *dueRound) {
	e.clearMaybeLeased(thread)
	if e.isWaiting(thread) {
		return
	}
	var err error
	if p := contain.Call(func() { err = e.doDueWork(ctx, thread) }); p != nil {
		err = p
	}
	e.feed.InvalidateTopic(thread)
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrConflict):
	case runtime.IsStoreFault(err):
		e.markMaybeLeased(thread)
		r.addRefusal(err)
		if ctx.Err() == nil {
			e.log.Warn("due thread not taken up", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
		}
	case ctx.Err() == nil:
		e.quarantineThread(ctx, thread, err)
	}
}

// isWaiting reports whether a thread is quarantined or queued. A thread that runs
// here is processed even while it is queued.
func (e *Engine) isWaiting(thread string) bool {
	return e.quarantine.IsQuarantined(thread, e.uptime()) || e.capacity.IsQueued(thread) && e.findSession(thread) == nil
}

// doDueWork does what is due for one thread.
func (e *Engine) doDueWork(ctx context.Context, thread string) error {
	here := e.findSession(thread) != nil
	head, err := e.store.Head(ctx, thread)
	if err != nil {
		if errors.Is(err, checkpoint.ErrThreadNotFound) {
			return nil
		}
		return err
	}
	late := !head.Due.IsZero() && !head.Due.After(head.Now)
	switch {
	case here && late && head.Open > 0:
		return e.expireInterrupts(ctx, head)
	case here, head.Leased() && head.Owner != e.id, head.RetryAt.After(head.Now):
		return nil
	case head.State == checkpoint.ThreadBusy && head.Cancel != nil && head.Cancel.Run == head.Run:
		return e.finishCancel(ctx, head)
	case (head.State == checkpoint.ThreadBusy || query.CanResume(&head)) && e.isLeftToOther(&head):
		return nil
	case head.State == checkpoint.ThreadBusy && e.isStillUnserved(&head):
		return e.postponeUnserved(ctx, head)
	case head.State == checkpoint.ThreadBusy:
		return e.takeWithCapacity(ctx, head, e.takeOverRun)
	case isExpired(&head):
		return e.removeThread(ctx, head)
	case query.CanResume(&head):
		return e.takeWithCapacity(ctx, head, e.takeOverRun)
	case e.threads.IsPruneDue(&head):
		return e.threads.PruneRested(ctx, head)
	case head.State == checkpoint.ThreadInterrupted && head.Open > 0:
		return e.expireInterrupts(ctx, head)
	case head.State != checkpoint.ThreadInterrupted && len(head.Queue) > 0:
		return e.takeWithCapacity(ctx, head, e.beginQueuedRun)
	default:
		return e.setNextDue(ctx, head)
	}
}

// takeWithCapacity takes a thread if there is capacity for its run, else the thread
// is queued.
func (e *Engine) takeWithCapacity(ctx context.Context, head checkpoint.Head, take func(context.Context, checkpoint.Head) error) error {
	var err error = capacity.ErrNoCapacity
	if e.capacity.HasFreeSlot() {
		err = take(ctx, head)
	}
	switch {
	case errors.Is(err, capacity.ErrNoCapacity):
		e.capacity.EnqueueThread(head.Thread, err)
		return nil
	case errors.Is(err, errThreadHeld), errors.Is(err, errDraining):
		return nil
	}
	return err
}

// isExpired reports whether a thread's time is over.
func isExpired(h *checkpoint.Head) bool {
	at := commit.ExpiryTime(h)
	return !at.IsZero() && !at.After(h.Now)
}

// setNextDue sets the time at which the thread is due next.
func (e *Engine) setNextDue(ctx context.Context, head checkpoint.Head) error {
	_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.Head.Due = commit.ExpiryTime(&t.Head)
		return nil
	})
	return err
}

// takeOverRun goes on with a run without a driver.
func (e *Engine) takeOverRun(ctx context.Context, head checkpoint.Head) error {
	var (
		refused   error
		elsewhere string
		l         *superstep.Loop
	)
	next, err := e.takeThread(ctx, &head, runtime.WaitForever, func(s *session, t *commit.Tx) (*superstep.Loop, string, error) {
		var err error
		if l, err = continueRun(ctx, e.reader, s, t, nil); err != nil {
			refused = query.IgnoreLarge(err)
			return nil, "", err
		}
		s.loopThread.Recovery.NoteTakeOver(&head)
		l.MarkHandedOut()
		if elsewhere = e.findOtherServer(head.Thread, l); elsewhere != "" && head.PreferredOwner == "" {
			return nil, "", errElsewhere
		}
		s.claimLease(t)
		return l, "", nil
	})
	switch {
	case refused != nil:
		return e.failUnusableRun(ctx, head, refused)
	case errors.Is(err, errElsewhere):
		return e.handOffDueThread(ctx, head, elsewhere)
	case err != nil:
		return err
	}
	e.log.Info("run taken up", zap.String("thread", head.Thread), zap.String("run", l.Run().ID), zap.Uint64("fence", next.Fence))
	return nil
}

// errElsewhere says that another server has the workers of a run.
var errElsewhere = errors.New("another server has the workers of the run")

// failUnusableRun fails a run that can't go on here or anywhere: its state can't be read,
// or nothing that its graph allows. A store that does not answer is no such
// reason, and a graph that is not known here may be known soon.
func (e *Engine) failUnusableRun(ctx context.Context, head checkpoint.Head, cause error) error {
	refused, ok := errors.AsType[*runtime.Error](cause)
	if !ok || refused.IsStoreFault() {
		return cause
	}
	if refused.Reason == runtime.ReasonGraphNotFound || refused.Reason == runtime.ReasonGraphVersionUnavailable {
		return e.postponeUnknownGraph(ctx, head, cause)
	}
	run, err := e.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return err
	}
	_, err = e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Owner, t.Head.Due = "", time.Time{}
		run.State, run.Updated = checkpoint.RunFailed, t.Now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.RecordRunEnd(&run)
		return nil
	})
	if err == nil {
		e.logFailedRun(&run)
	}
	return err
}

// logFailedRun logs a run that has failed without being driven.
func (e *Engine) logFailedRun(run *checkpoint.Run) {
	e.log.Warn("run failed", append(failureFields(run.Failure), zap.String("thread", run.Thread), zap.String("run", run.ID),
		zap.String("graph", run.Graph), zap.String("state", string(run.State)))...)
}

// postponeUnknownGraph leaves a thread whose graph is not known here alone for a while.
func (e *Engine) postponeUnknownGraph(ctx context.Context, head checkpoint.Head, why error) error {
	e.log.Warn("due thread not taken up", zap.String("thread", head.Thread), zap.String("run", head.Run), zap.Error(why), runtime.CauseField(why))
	_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.RemoteTasks = head.Updated, "", superstep.RemoteTasksOf(&head)
		t.Head.Due = t.Now.Add(e.opts.LeaseTTL)
		if head.PreferredOwner == e.id && head.PreferredUntil.After(head.Now) { // the graph may be so new that it is not known here yet
			t.Head.Due = t.Now.Add(e.opts.ScanInterval)
		}
		return nil
	})
	return err
}

// beginQueuedRun begins the first of the runs that wait.
func (e *Engine) beginQueuedRun(ctx context.Context, head checkpoint.Head) error {
	var (
		run     checkpoint.Run
		refused error
	)
	_, err := e.takeThread(ctx, &head, runtime.WaitForever, func(s *session, t *commit.Tx) (*superstep.Loop, string, error) {
		var err error
		if run, err = e.store.Run(ctx, head.Thread, head.Queue[0]); err != nil {
			return nil, "", runtime.TranslateStoreError(err)
		}
		t.Head.Queue = head.Queue[1:]
		l, err := e.prepareQueuedRun(ctx, s, t, &run)
		if err != nil {
			refused = query.IgnoreLarge(err)
			return nil, "", err
		}
		to, err := e.claimOrHandOff(s, t, l)
		return l, to, err
	})
	if refused != nil {
		return e.failQueuedRun(ctx, head, run, refused)
	}
	return err
}

func (e *Engine) prepareQueuedRun(ctx context.Context, s *session, t *commit.Tx, run *checkpoint.Run) (*superstep.Loop, error) {
	g, err := e.reader.FindGraph(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	if err := checkAtCheckpoint(&t.Head, run.Request.Expected); err != nil {
		return nil, err
	}
	state, err := e.reader.LoadState(ctx, &s.reservation, &t.Head, g)
	if err != nil {
		return nil, err
	}
	run.Base = t.Head.Checkpoint
	l := s.newRootLoop(run, state)
	return l, superstep.BeginRun(ctx, e.reader, t, l)
}

// failQueuedRun fails a queued run that can no longer begin; what is behind it
// gets its turn.
func (e *Engine) failQueuedRun(ctx context.Context, head checkpoint.Head, run checkpoint.Run, cause error) error {
	var refused *runtime.Error
	if !errors.As(cause, &refused) || refused.IsStoreFault() {
		return cause
	}
	_, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Queue = head.Queue[1:]
		run.State, run.Updated = checkpoint.RunFailed, t.Now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure})
		run.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, run)
		return nil
	})
	if err == nil {
		e.logFailedRun(&run)
	}
	return err
}

// expireInterrupts does what was agreed on for interrupts that were not answered in time.
func (e *Engine) expireInterrupts(ctx context.Context, head checkpoint.Head) error {
	_, err := e.changeFrom(ctx, head, func(t *commit.Tx) error {
		if t.Head.Run != head.Run {
			return checkpoint.ErrConflict
		}
		open, err := e.reader.ListOpenInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		t.Head.Updated, t.Head.Due = head.Updated, time.Time{}
		if t.Head.State != checkpoint.ThreadBusy {
			t.Head.Due = commit.ExpiryTime(&t.Head)
		}
		late := takeExpired(t, open)
		if len(late) == 0 {
			return nil
		}
		return e.putExpired(ctx, t, late)
	})
	e.wakeScheduler()
	return err
}

// takeExpired returns the expired interrupts and schedules the thread for the
// others.
func takeExpired(t *commit.Tx, open []checkpoint.Interrupt) []checkpoint.Interrupt {
	var late []checkpoint.Interrupt
	for _, q := range open {
		if q.Expires.IsZero() || q.Expires.After(t.Now) {
			t.ScheduleBy(q.Expires)
			continue
		}
		q.State, q.Updated = checkpoint.InterruptExpired, t.Now
		if q.Expiry == checkpoint.ExpiryResumeDefault {
			q.Response = orNull(q.Default)
		}
		late = append(late, q)
	}
	return late
}

// putExpired puts the end of some interrupts into a change: their nodes go on, with
// the default or with the failure that there was no answer, or the run is
// cancelled.
func (e *Engine) putExpired(ctx context.Context, t *commit.Tx, late []checkpoint.Interrupt) error {
	t.Interrupts = append(t.Interrupts, late...)
	t.Head.Open = max(0, t.Head.Open-len(late))
	t.Head.Updated = t.Now
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: late})
	for _, q := range late {
		if q.Expiry != checkpoint.ExpiryCancelRun {
			t.Head.Answered++
			continue
		}
		return e.cancelExpiredRun(ctx, t)
	}
	if t.Head.Owner == "" {
		t.ScheduleBy(t.Now)
	}
	return nil
}

// cancelExpiredRun ends the run whose interrupt expired, or asks its driver to.
func (e *Engine) cancelExpiredRun(ctx context.Context, t *commit.Tx) error {
	request := checkpoint.Cancel{Run: t.Head.Run, Reason: "a question expired"}
	if t.Head.State == checkpoint.ThreadBusy {
		if err := e.requestCancel(ctx, t, request); !errors.Is(err, commit.ErrNoChange) {
			return err
		}
		return nil
	}
	run, err := e.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	return e.endCancelledRun(ctx, t, run, request)
}

func orNull(v payload.JSON) payload.JSON {
	if v == "" {
		return payload.Null
	}
	return v
}
