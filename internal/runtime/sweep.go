package runtime

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
)

// sweepBatch is how many threads one look at the store takes up.
const sweepBatch = 256

// nudge makes the sweeper look at once.
func (e *Engine) nudge() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// sweep takes up what is due: queued runs, runs whose owner is gone, answers
// that nobody picked up, questions and threads that expire. What is due is a
// function of the threads' heads, so no wake-up can be lost.
func (e *Engine) sweep(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		woken := false
		select {
		case <-e.draining:
			return
		case <-ctx.Done():
			return
		case <-e.wake:
			woken = true
		case <-timer.C:
		}
		e.tellBytes()
		if e.pauses(timer) {
			continue
		}
		e.callServed(ctx)
		if full := e.serveLine(ctx); full && woken || e.pauses(timer) {
			continue
		}
		next := e.sweepOnce(ctx)
		timer.Reset(max(min(e.opts.Sweep, max(next, time.Millisecond)), e.refusals.wait(e.uptime())))
	}
}

// pauses reports whether the store refuses changes, and wakes the sweeper when it
// is time to try again.
func (e *Engine) pauses(timer *time.Timer) bool {
	wait := e.refusals.wait(e.uptime())
	if wait > 0 {
		timer.Reset(wait)
	}
	return wait > 0
}

// serveLine takes up threads that have waited for places that are free now. It
// reports whether none is left: what else is due is looked for when it is time.
func (e *Engine) serveLine(ctx context.Context) (full bool) {
	for {
		threads, full := e.call()
		if len(threads) == 0 {
			return full
		}
		r := round{engine: e}
		for _, thread := range e.tendAll(ctx, threads, &r) {
			e.adrift(thread)
		}
		e.uncallAll(threads)
		if r.close(); r.refused.Load() > 0 {
			return false
		}
	}
}

// sweepers is how many threads are attended to at the same time.
const sweepers = 16

// sweepOnce looks once, and says how soon the next look is worth while.
func (e *Engine) sweepOnce(ctx context.Context) time.Duration {
	threads, next, err := e.due(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("cannot look for due work", zap.Error(err), cause(err))
		}
		return e.opts.Sweep
	}
	e.attendTo(ctx, threads)
	if next.IsZero() || !e.room() {
		return e.opts.Sweep
	}
	return next.Sub(e.now())
}

// attendTo attends to threads that are due, and to those that were given up.
func (e *Engine) attendTo(ctx context.Context, due []string) {
	r := round{engine: e}
	threads := append(e.salvage(), due...)
	switch {
	case r.alone(): // the first one shall not always be the same
		shuffle(threads)
	case e.tuner != nil: // others look at the same moment: they shall not all begin with the same
		shuffle(threads[len(threads)-len(due):])
	}
	e.tendAll(ctx, threads, &r)
	if r.full.Load() {
		e.freeRoom(ctx, due)
	}
	r.close()
}

func shuffle(threads []string) {
	rand.Shuffle(len(threads), func(i, j int) { threads[i], threads[j] = threads[j], threads[i] })
}

// tendAll attends to threads side by side, and waits until that is done. It
// returns those that are left because the store takes no changes.
func (e *Engine) tendAll(ctx context.Context, threads []string, r *round) (left []string) {
	slots := make(chan struct{}, sweepers)
	var all sync.WaitGroup
	defer all.Wait()
	for i, thread := range threads {
		if r.over() {
			return threads[i:]
		}
		slots <- struct{}{}
		all.Go(contain.Func(func() {
			defer func() { <-slots }()
			e.tend(ctx, thread, r)
		}, contain.Log(e.log, "the sweeper panicked")))
		if r.alone() {
			all.Wait()
		}
	}
	return nil
}

// enough is how many threads make a look at the store worth while.
const enough = sweepBatch / 4

// due asks the store for what is due, without the threads that are put off or
// wait for a place. They must not keep others out of the batch, whatever the store
// says of them: where they leave next to nothing of it, twice as much is asked for.
func (e *Engine) due(ctx context.Context) (threads []string, next time.Time, err error) {
	most := sweepBatch + e.waiting() + e.inLine.len() + e.heavyLine.len()
	for limit := sweepBatch; ; limit = min(2*limit, most) {
		if p := contain.Call(func() { threads, next, err = e.store.Due(ctx, limit) }); p != nil {
			return nil, time.Time{}, p
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		all := len(threads)
		threads = slices.DeleteFunc(threads, e.isWaiting)
		if all < limit || limit == most || len(threads) >= enough {
			return threads, next, nil
		}
	}
}

// tend attends to one thread. When that fails for a reason that the thread
// itself may be, it is put off.
func (e *Engine) tend(ctx context.Context, thread string, r *round) {
	e.attended(thread)
	if e.isWaiting(thread) {
		return
	}
	var err error
	if p := contain.Call(func() { err = e.attend(ctx, thread) }); p != nil {
		err = p
	}
	e.hub.doubt(thread)
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrConflict):
	case storeAway(err):
		e.adrift(thread)
		r.refuse(err)
		if ctx.Err() == nil {
			e.log.Warn("due thread not taken up", zap.String("thread", thread), zap.Error(err), cause(err))
		}
	case ctx.Err() == nil:
		e.putOff(ctx, thread, err)
	}
}

// isWaiting reports whether a thread is put off, or waits for a place. What runs
// here is attended to even while it is still in line.
func (e *Engine) isWaiting(thread string) bool {
	return e.faults.waits(thread, e.uptime()) || (e.inLine.has(thread) || e.heavyLine.has(thread)) && e.session(thread) == nil
}

// attend does what is due for one thread.
func (e *Engine) attend(ctx context.Context, thread string) error {
	here := e.session(thread) != nil
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
		return e.expireQuestions(ctx, head)
	case here, head.Leased() && head.Owner != e.id, head.RetryAt.After(head.Now):
		return nil
	case head.State == checkpoint.ThreadBusy && head.Cancel != nil && head.Cancel.Run == head.Run:
		return e.finishCancel(ctx, head)
	case (head.State == checkpoint.ThreadBusy || awake(&head)) && e.leftTo(&head):
		return nil
	case head.State == checkpoint.ThreadBusy && e.stillUnserved(&head):
		return e.putBack(ctx, head)
	case head.State == checkpoint.ThreadBusy:
		return e.withPlace(ctx, head, e.takeOver)
	case expired(&head):
		return e.remove(ctx, head)
	case awake(&head):
		return e.withPlace(ctx, head, e.takeOver)
	case e.overfull(&head):
		return e.prune(ctx, head)
	case head.State == checkpoint.ThreadInterrupted && head.Open > 0:
		return e.expireQuestions(ctx, head)
	case head.State != checkpoint.ThreadInterrupted && len(head.Queue) > 0:
		return e.withPlace(ctx, head, e.dequeue)
	default:
		return e.settle(ctx, head)
	}
}

// withPlace takes a thread where there is a place for its run; otherwise the
// thread waits in line.
func (e *Engine) withPlace(ctx context.Context, head checkpoint.Head, take func(context.Context, checkpoint.Head) error) error {
	var err error = errNoRoom
	if e.room() {
		err = take(ctx, head)
	}
	switch {
	case errors.Is(err, errNoRoom):
		e.awaitRoom(head.Thread, err)
		return nil
	case errors.Is(err, errHeld), errors.Is(err, errDraining):
		return nil
	}
	return err
}

// awake reports whether a thread that waits for people has answers to go on
// with, though nobody drives it yet.
func awake(h *checkpoint.Head) bool {
	return h.State == checkpoint.ThreadInterrupted && h.Answered > 0 && (!h.Hold || h.Open == 0)
}

// expired reports whether a thread's time is over.
func expired(h *checkpoint.Head) bool {
	at := expiry(h)
	return !at.IsZero() && !at.After(h.Now)
}

// expiry is when a thread will be deleted; zero = never.
func expiry(h *checkpoint.Head) time.Time {
	switch {
	case !h.Expires.IsZero():
		return h.Expires
	case h.TTL > 0:
		return h.Updated.Add(h.TTL)
	}
	return time.Time{}
}

// remove deletes a thread that is at the revision of head.
func (e *Engine) remove(ctx context.Context, head checkpoint.Head) error {
	ctx, cancel := e.patience(ctx)
	defer cancel()
	_, err := e.store.Apply(ctx, &checkpoint.Change{
		Thread: head.Thread, Expect: head.Revision, LogID: head.LogID, Op: e.op(), Delete: true,
	})
	if err == nil {
		e.hub.end(head.Thread, e.now())
	}
	return storeError(err)
}

// settle sets the time at which the thread must be looked at next.
func (e *Engine) settle(ctx context.Context, head checkpoint.Head) error {
	_, err := e.tryChange(ctx, head, func(t *tx) error {
		t.Head.Updated = head.Updated
		t.Head.Due = expiry(&t.Head)
		return nil
	})
	return err
}

// takeOver goes on with a run that nobody drives.
func (e *Engine) takeOver(ctx context.Context, head checkpoint.Head) error {
	var (
		refused   error
		elsewhere string
		l         *loop
	)
	next, err := e.take(ctx, head, forever, func(s *session, t *tx) (*loop, string, error) {
		var err error
		if l, err = e.pickUp(ctx, s, t, nil); err != nil {
			refused = unlessLarge(err)
			return nil, "", err
		}
		s.recovery.recover(&head)
		l.inherited = true
		if elsewhere = e.elsewhere(l); elsewhere != "" && head.Wish == "" {
			return nil, "", errElsewhere
		}
		s.lease(t)
		return l, "", nil
	})
	switch {
	case refused != nil:
		return e.giveUp(ctx, head, refused)
	case errors.Is(err, errElsewhere):
		return e.point(ctx, head, elsewhere)
	case err != nil:
		return err
	}
	e.log.Info("run taken up", zap.String("thread", head.Thread), zap.String("run", l.run.ID), zap.Uint64("fence", next.Fence))
	return nil
}

// errElsewhere says that another server has the workers of a run.
var errElsewhere = errors.New("another server has the workers of the run")

// giveUp fails a run that can't go on here or anywhere: its state can't be read,
// or nothing that its graph allows. A store that does not answer is no such
// reason, and a graph that is not known here may be known soon.
func (e *Engine) giveUp(ctx context.Context, head checkpoint.Head, cause error) error {
	refused, ok := errors.AsType[*Error](cause)
	if !ok || refused.StoreAway() {
		return cause
	}
	if refused.Reason == ReasonGraphNotFound || refused.Reason == ReasonGraphVersionUnavailable {
		return e.later(ctx, head, cause)
	}
	run, err := e.store.Run(ctx, head.Thread, head.Run)
	if err != nil {
		return err
	}
	_, err = e.tryChange(ctx, head, func(t *tx) error {
		t.Head.Owner, t.Head.Due = "", time.Time{}
		run.State, run.Updated = checkpoint.RunFailed, t.now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.endRun(&run)
		return nil
	})
	if err == nil {
		e.logFailed(&run)
	}
	return err
}

// logFailed tells of a run that has failed without being driven.
func (e *Engine) logFailed(run *checkpoint.Run) {
	e.log.Warn("run failed", append(failureFields(run.Failure), zap.String("thread", run.Thread), zap.String("run", run.ID),
		zap.String("graph", run.Graph), zap.String("state", string(run.State)))...)
}

// later leaves a thread whose graph is not known here alone for a while.
func (e *Engine) later(ctx context.Context, head checkpoint.Head, why error) error {
	e.log.Warn("due thread not taken up", zap.String("thread", head.Thread), zap.String("run", head.Run), zap.Error(why), cause(why))
	_, err := e.tryChange(ctx, head, func(t *tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.Lent = head.Updated, "", lentBy(&head)
		t.Head.Due = t.now.Add(e.opts.Lease)
		if head.Wish == e.id && head.WishUntil.After(head.Now) { // the graph may be so new that it is not known here yet
			t.Head.Due = t.now.Add(e.opts.Sweep)
		}
		return nil
	})
	return err
}

// dequeue begins the first of the runs that wait.
func (e *Engine) dequeue(ctx context.Context, head checkpoint.Head) error {
	var (
		run     checkpoint.Run
		refused error
	)
	_, err := e.take(ctx, head, forever, func(s *session, t *tx) (*loop, string, error) {
		var err error
		if run, err = e.store.Run(ctx, head.Thread, head.Queue[0]); err != nil {
			return nil, "", storeError(err)
		}
		t.Head.Queue = head.Queue[1:]
		l, err := e.beginQueued(ctx, s, t, &run)
		if err != nil {
			refused = unlessLarge(err)
			return nil, "", err
		}
		to, err := e.settleOn(s, t, l)
		return l, to, err
	})
	if refused != nil {
		return e.dropQueued(ctx, head, run, refused)
	}
	return err
}

func (e *Engine) beginQueued(ctx context.Context, s *session, t *tx, run *checkpoint.Run) (*loop, error) {
	g, err := e.graphOf(run.Graph, run.Version)
	if err != nil {
		return nil, err
	}
	if err := atCheckpoint(&t.Head, run.Request.Expected); err != nil {
		return nil, err
	}
	state, err := e.load(ctx, &s.load, &t.Head, g)
	if err != nil {
		return nil, err
	}
	run.Base = t.Head.Checkpoint
	l := s.root(run, state)
	return l, e.first(ctx, t, l)
}

// dropQueued fails a queued run that can no longer begin; what is behind it
// gets its turn.
func (e *Engine) dropQueued(ctx context.Context, head checkpoint.Head, run checkpoint.Run, cause error) error {
	var refused *Error
	if !errors.As(cause, &refused) || refused.StoreAway() {
		return cause
	}
	_, err := e.tryChange(ctx, head, func(t *tx) error {
		t.Head.Queue = head.Queue[1:]
		run.State, run.Updated = checkpoint.RunFailed, t.now
		run.Failure = &checkpoint.Failure{Reason: refused.Reason, Message: refused.Message}
		t.emit(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure})
		run.LastEvent = t.Head.LastEvent
		t.Runs = append(t.Runs, run)
		return nil
	})
	if err == nil {
		e.logFailed(&run)
	}
	return err
}

// expireQuestions does what was agreed on for questions nobody answered in time.
func (e *Engine) expireQuestions(ctx context.Context, head checkpoint.Head) error {
	_, err := e.changeFrom(ctx, head, func(t *tx) error {
		if t.Head.Run != head.Run {
			return checkpoint.ErrConflict
		}
		open, err := e.openInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		t.Head.Updated, t.Head.Due = head.Updated, time.Time{}
		if t.Head.State != checkpoint.ThreadBusy {
			t.Head.Due = expiry(&t.Head)
		}
		late := t.late(open)
		if len(late) == 0 {
			return nil
		}
		return e.expireThem(ctx, t, late)
	})
	e.nudge()
	return err
}

// late picks the questions whose time is over, and makes an appointment for
// the others.
func (t *tx) late(open []checkpoint.Interrupt) []checkpoint.Interrupt {
	var late []checkpoint.Interrupt
	for _, q := range open {
		if q.Expires.IsZero() || q.Expires.After(t.now) {
			t.due(q.Expires)
			continue
		}
		q.State, q.Updated = checkpoint.InterruptExpired, t.now
		if q.Expiry == checkpoint.ExpiryResumeDefault {
			q.Response = orNull(q.Default)
		}
		late = append(late, q)
	}
	return late
}

// expireThem puts the end of some questions into a change: their nodes go on,
// with the default or with the news that nobody answered, or the run is
// cancelled.
func (e *Engine) expireThem(ctx context.Context, t *tx, late []checkpoint.Interrupt) error {
	t.Interrupts = append(t.Interrupts, late...)
	t.Head.Open = max(0, t.Head.Open-len(late))
	t.Head.Updated = t.now
	t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: late})
	for _, q := range late {
		if q.Expiry != checkpoint.ExpiryCancelRun {
			t.Head.Answered++
			continue
		}
		return e.cancelExpired(ctx, t)
	}
	if t.Head.Owner == "" {
		t.due(t.now)
	}
	return nil
}

// cancelExpired ends the run whose question expired, or asks its driver to.
func (e *Engine) cancelExpired(ctx context.Context, t *tx) error {
	wish := checkpoint.Cancel{Run: t.Head.Run, Reason: "a question expired"}
	if t.Head.State == checkpoint.ThreadBusy {
		if err := e.askToStop(ctx, t, wish); !errors.Is(err, errNoChange) {
			return err
		}
		return nil
	}
	run, err := e.store.Run(ctx, t.Thread, t.Head.Run)
	if err != nil {
		return storeError(err)
	}
	return e.endCancelled(ctx, t, run, wish)
}

func orNull(v payload.JSON) payload.JSON {
	if v == "" {
		return payload.Null
	}
	return v
}
