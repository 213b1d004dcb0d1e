package scheduler

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
	"github.com/graphd-dev/graphd/internal/runtime"
)

// isPaused reports whether the store refuses changes, and sets the timer for the
// next try.
func (s *Scheduler) isPaused(timer *time.Timer) bool {
	wait := s.storeBackoff.remainingPause(s.opts.Uptime())
	if wait > 0 {
		timer.Reset(wait)
	}
	return wait > 0
}

// isResting reports whether the last look at the store was a long one and just before, and
// sets the timer for the next.
func (s *Scheduler) isResting(timer *time.Timer) bool {
	wait := s.restUntil - s.opts.Uptime()
	if wait > 0 {
		timer.Reset(wait)
	}
	return wait > 0
}

// processServed processes the threads that waited for workers.
func (s *Scheduler) processServed(ctx context.Context) {
	if elsewhere := s.opts.QueueServed(); len(elsewhere) > 0 {
		r := round{scheduler: s}
		s.processThreads(ctx, elsewhere, &r)
		r.finishRound()
	}
}

// processGranted processes queued threads for which there is capacity. It returns true
// when all slots are taken: other due threads can wait for the next scan.
func (s *Scheduler) processGranted(ctx context.Context) (full bool) {
	for {
		threads, full := s.opts.Granter.GrantWaiting(MaxParallelDue)
		if len(threads) == 0 {
			return full
		}
		r := round{scheduler: s}
		for _, thread := range s.processThreads(ctx, threads, &r) {
			s.opts.Abandoned.MarkMaybeLeased(thread)
		}
		s.opts.Granter.EndGrants(threads)
		if r.finishRound(); r.refusedCount.Load() > 0 {
			return false
		}
	}
}

// processDueOnce processes the due threads once, and returns the time until
// the next look.
func (s *Scheduler) processDueOnce(ctx context.Context) time.Duration {
	threads, next, err := s.listDue(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("cannot look for due work", zap.Error(err), runtime.CauseField(err))
		}
		return s.opts.ScanInterval
	}
	s.processDue(ctx, threads)
	if next.IsZero() || !s.opts.Granter.HasFreeSlot() {
		return s.opts.ScanInterval
	}
	return next.Sub(s.opts.Now())
}

// processDue processes threads that are due, and those that were abandoned.
func (s *Scheduler) processDue(ctx context.Context, due []string) {
	r := round{scheduler: s}
	threads := append(s.opts.Abandoned.ListMaybeLeased(), due...)
	switch {
	case r.isProbing(): // vary the first thread
		shuffleThreads(threads)
	case s.opts.IsShared: // other servers look at the same moment: vary the first thread
		shuffleThreads(threads[len(threads)-len(due):])
	}
	s.processThreads(ctx, threads, &r)
	if r.isStoreFull.Load() {
		s.freeStoreSpace(ctx, due)
	}
	r.finishRound()
}

func shuffleThreads(threads []string) {
	rand.Shuffle(len(threads), func(i, j int) { threads[i], threads[j] = threads[j], threads[i] })
}

// processThreads processes threads side by side, and waits until that is done. It
// returns those that are left because the store takes no changes.
func (s *Scheduler) processThreads(ctx context.Context, threads []string, r *round) (left []string) {
	slots := make(chan struct{}, MaxParallelDue)
	var all sync.WaitGroup
	defer all.Wait()
	for i, thread := range threads {
		if r.isOver() {
			return threads[i:]
		}
		slots <- struct{}{}
		all.Go(contain.Func(func() {
			defer func() { <-slots }()
			s.processThread(ctx, thread, r)
		}, contain.LogPanic(s.log, "the sweeper panicked")))
		if r.isProbing() {
			all.Wait()
		}
	}
	return nil
}

// listDue returns the due threads that are neither quarantined nor queued. If
// such threads take nearly all of the batch, it reads twice as many.
func (s *Scheduler) listDue(ctx context.Context) (threads []string, next time.Time, err error) {
	began := s.opts.Uptime()
	most := dueBatch + s.countQuarantined() + s.opts.Queue.CountQueued()
	for limit := dueBatch; ; limit = min(2*limit, most) {
		if p := contain.Call(func() { threads, next, err = s.opts.Store.Due(ctx, limit) }); p != nil {
			return nil, time.Time{}, p
		}
		if err != nil {
			return nil, time.Time{}, err
		}
		all := len(threads)
		threads = slices.DeleteFunc(threads, s.isWaiting)
		if all < limit || limit == most || len(threads) >= minUsefulBatch {
			if now := s.opts.Uptime(); limit > dueBatch {
				s.restUntil = now + restFactor*(now-began)
			}
			return threads, next, nil
		}
	}
}

// ProcessThread processes one thread that may be due.
func (s *Scheduler) ProcessThread(ctx context.Context, thread string) {
	s.processThread(ctx, thread, &round{scheduler: s})
}

// processThread processes one thread. If that fails for a reason that may lie in
// the thread, the thread is quarantined.
func (s *Scheduler) processThread(ctx context.Context, thread string, r *round) {
	s.opts.Abandoned.ClearMaybeLeased(thread)
	if s.isWaiting(thread) {
		return
	}
	var err error
	if p := contain.Call(func() { err = s.processor.ProcessDue(ctx, thread) }); p != nil {
		err = p
	}
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrConflict):
	case runtime.IsStoreFault(err):
		s.opts.Abandoned.MarkMaybeLeased(thread)
		r.addRefusal(err)
		if ctx.Err() == nil {
			s.log.Warn("due thread not taken up", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
		}
	case ctx.Err() == nil:
		s.QuarantineThread(ctx, thread, err)
	}
}

// isWaiting reports whether a thread is quarantined or queued. A thread that runs
// here is processed even while it is queued.
func (s *Scheduler) isWaiting(thread string) bool {
	return s.quarantine.isQuarantined(thread, s.opts.Uptime()) || s.opts.Queue.IsQueued(thread) && !s.opts.IsLive(thread)
}

// freeStoreSpace deletes the expired records of some threads. A full store may
// accept that.
func (s *Scheduler) freeStoreSpace(ctx context.Context, threads []string) {
	for _, thread := range threads {
		if s.quarantine.isQuarantined(thread, s.opts.Uptime()) || s.opts.IsLive(thread) {
			continue
		}
		var err error
		if p := contain.Call(func() { err = s.processor.FreeSpace(ctx, thread) }); p != nil {
			err = p
		}
		switch {
		case err == nil, errors.Is(err, checkpoint.ErrConflict), errors.Is(err, checkpoint.ErrThreadNotFound):
		case runtime.IsStoreFault(err), ctx.Err() != nil:
			return
		default:
			s.log.Warn("due thread not deleted or cut off", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
		}
	}
}
