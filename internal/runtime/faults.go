package runtime

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// A thread may be such that the engine fails whenever it takes it: a defect in
// the engine, in a graph or in a stored record. The thread is put off, longer
// each time, and its head counts how often: every server sees that, a restart
// does not begin anew, and the thread shows it. What this process remembers
// besides is for the metric, and for a store that can't take even that change.

// Pauses of a thread that can't be taken.
const (
	shortestPause = time.Second
	longestPause  = 5 * time.Minute
	forgetAfter   = time.Minute // beyond the pause
)

// maxFaults bounds how many such threads a process remembers.
const maxFaults = 1024

// faults are the threads that this process has put off.
type faults struct {
	mu      sync.Mutex
	threads map[string]fault
}

// fault is why and for how long one thread is left alone.
type fault struct {
	count int
	until time.Duration // Engine.uptime
}

// pauseAfter is how long a thread is left alone after so many failures in a row.
func pauseAfter(count int) time.Duration {
	return min(shortestPause<<min(count-1, 10), longestPause)
}

// waits reports whether a thread is still put off.
func (f *faults) waits(thread string, now time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.threads[thread].until > now
}

// forget notes that a thread has come further.
func (f *faults) forget(thread string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.threads, thread)
}

// add notes one more failure of a thread, of which its head knows some.
func (f *faults) add(thread string, known int, now time.Duration) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.threads == nil {
		f.threads = make(map[string]fault)
	}
	if _, there := f.threads[thread]; !there && len(f.threads) >= maxFaults {
		f.evict()
	}
	n := max(f.threads[thread].count, known) + 1
	next := fault{count: n, until: now + pauseAfter(n)}
	f.threads[thread] = next
	return next
}

// evict forgets the thread that is looked at again first. The caller holds mu.
func (f *faults) evict() {
	first, found := "", false
	for thread, x := range f.threads {
		if !found || x.until < f.threads[first].until {
			first, found = thread, true
		}
	}
	delete(f.threads, first)
}

// prune forgets threads that have not failed again for longer than they were put
// off: another server attends to them, or they are gone. It returns how many
// are left.
func (f *faults) prune(now time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for thread, x := range f.threads {
		if now > x.until+pauseAfter(x.count)+forgetAfter {
			delete(f.threads, thread)
		}
	}
	return len(f.threads)
}

// waiting is how many threads are put off, and tells the observer.
func (e *Engine) waiting() int {
	n := e.faults.prune(e.uptime())
	if e.poisoned.Swap(int64(n)) != int64(n) {
		e.observer.ThreadsPoisoned(n)
	}
	return n
}

// putOff leaves a thread alone for a while because it could not be taken. The
// rest goes on.
func (e *Engine) putOff(ctx context.Context, thread string, why error) {
	head, known := checkpoint.Head{}, false
	caught := contain.Call(func() {
		h, err := e.store.Head(ctx, thread)
		head, known = h, err == nil
	})
	x := e.faults.add(thread, head.Faults, e.uptime())
	e.waiting()
	fields := append(faultFields(why), zap.String("thread", thread), zap.String("run", head.Run),
		zap.Int("failures", x.count), zap.Duration("pause", pauseAfter(x.count)))
	e.log.Error("thread not taken up; it is put off", fields...)
	if caught == nil && known {
		var err error
		if caught = contain.Call(func() { err = e.storePutOff(ctx, &head, x) }); err != nil && ctx.Err() == nil {
			e.log.Warn("putting a thread off was not stored", zap.String("thread", thread), zap.Error(err), cause(err))
		}
	}
	if caught != nil {
		e.log.Error("the engine panicked while it put a thread off", append(caught.Fields(), zap.String("thread", thread))...)
	}
}

func faultFields(why error) []zap.Field {
	if p, ok := errors.AsType[*contain.PanicError](why); ok {
		return p.Fields()
	}
	return []zap.Field{zap.Error(why), cause(why)}
}

// storePutOff notes in the head of a thread that it is put off. A lease without
// a session is given back.
func (e *Engine) storePutOff(ctx context.Context, head *checkpoint.Head, x fault) error {
	if head.Leased() && head.Owner != e.id {
		return nil
	}
	_, err := e.changeFrom(ctx, *head, func(t *tx) error {
		t.Head.Updated = head.Updated
		t.Head.Faults, t.Head.RetryAt = x.count, t.now.Add(pauseAfter(x.count))
		if t.Lease == 0 {
			t.Head.Lent, t.Head.Owner = lentBy(&t.Head), ""
		}
		t.due(t.Head.RetryAt)
		return nil
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil // the thread is no longer as it was
	}
	return err
}

// waitOut keeps a thread that is put off from being due before that is over.
func (t *tx) waitOut() {
	h := &t.Head
	if h.Faults > 0 && !h.Due.IsZero() && h.Due.Before(h.RetryAt) {
		h.Due = h.RetryAt
	}
}

// recovered notes that a thread that was put off has come further.
func (t *tx) recovered() { t.Head.Faults, t.Head.RetryAt = 0, time.Time{} }
