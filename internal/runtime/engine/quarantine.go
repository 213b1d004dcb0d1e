package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// A thread may be such that the engine fails whenever it takes it: a defect in the
// engine, in a graph or in a stored record. The thread is quarantined, longer each
// time, and its head counts how often: every server sees that, a restart does not
// begin anew, and the thread shows it. What this process remembers besides is for
// the metric, and for a store that can't take even that change.

// Pauses of a thread that can't be taken.
const (
	minQuarantine = time.Second
	maxQuarantine = 5 * time.Minute
	forgetAfter   = time.Minute // beyond the pause
)

// maxQuarantined bounds how many such threads a process remembers.
const maxQuarantined = 1024

// quarantine holds the threads that this process does not take for a while.
type quarantine struct {
	mu      sync.Mutex
	threads map[string]quarantineEntry
}

// quarantineEntry is why and for how long one thread is left alone.
type quarantineEntry struct {
	count int
	until time.Duration // Engine.uptime
}

// pauseAfter is how long a thread is left alone after so many failures in a row.
func pauseAfter(count int) time.Duration {
	return backoff.Policy{First: minQuarantine, Max: maxQuarantine}.Delay(count)
}

// isQuarantined reports whether a thread is still quarantined.
func (f *quarantine) isQuarantined(thread string, now time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.threads[thread].until > now
}

// removeThread ends the quarantine of a thread that has made progress.
func (f *quarantine) removeThread(thread string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.threads, thread)
}

// addFailure notes one more failure of a thread, of which its head knows some.
func (f *quarantine) addFailure(thread string, known int, now time.Duration) quarantineEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.threads == nil {
		f.threads = make(map[string]quarantineEntry)
	}
	if _, there := f.threads[thread]; !there && len(f.threads) >= maxQuarantined {
		f.evictEarliest()
	}
	n := max(f.threads[thread].count, known) + 1
	next := quarantineEntry{count: n, until: now + pauseAfter(n)}
	f.threads[thread] = next
	return next
}

// evictEarliest forgets the thread that is looked at again first. The caller holds mu.
func (f *quarantine) evictEarliest() {
	first, found := "", false
	for thread, x := range f.threads {
		if !found || x.until < f.threads[first].until {
			first, found = thread, true
		}
	}
	delete(f.threads, first)
}

// pruneStale forgets threads that have not failed again for longer than they were put
// off: another server attends to them, or they are gone. It returns how many
// are left.
func (f *quarantine) pruneStale(now time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for thread, x := range f.threads {
		if now > x.until+pauseAfter(x.count)+forgetAfter {
			delete(f.threads, thread)
		}
	}
	return len(f.threads)
}

// countQuarantined returns how many threads are quarantined and reports a change to
// the observer.
func (e *Engine) countQuarantined() int {
	n := e.quarantine.pruneStale(e.uptime())
	if e.reportedQuarantined.Swap(int64(n)) != int64(n) {
		e.observer.ThreadsPoisoned(n)
	}
	return n
}

// quarantineThread leaves a thread alone for a while because it could not be taken.
// Other threads go on.
func (e *Engine) quarantineThread(ctx context.Context, thread string, why error) {
	head, known := checkpoint.Head{}, false
	caught := contain.Call(func() {
		h, err := e.store.Head(ctx, thread)
		head, known = h, err == nil
	})
	x := e.quarantine.addFailure(thread, head.Faults, e.uptime())
	e.countQuarantined()
	fields := append(faultFields(why), zap.String("thread", thread), zap.String("run", head.Run),
		zap.Int("failures", x.count), zap.Duration("pause", pauseAfter(x.count)))
	e.log.Error("thread not taken up; it is put off", fields...)
	if caught == nil && known {
		var err error
		if caught = contain.Call(func() { err = e.storeQuarantine(ctx, &head, x) }); err != nil && ctx.Err() == nil {
			e.log.Warn("putting a thread off was not stored", zap.String("thread", thread), zap.Error(err), runtime.CauseField(err))
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
	return []zap.Field{zap.Error(why), runtime.CauseField(why)}
}

// storeQuarantine records the quarantine in the head of a thread. A lease without a
// session is returned.
func (e *Engine) storeQuarantine(ctx context.Context, head *checkpoint.Head, x quarantineEntry) error {
	if head.Leased() && head.Owner != e.id {
		return nil
	}
	_, err := e.changeFrom(ctx, *head, func(t *commit.Tx) error {
		t.Head.Updated = head.Updated
		t.Head.Faults, t.Head.RetryAt = x.count, t.Now.Add(pauseAfter(x.count))
		if t.Lease == 0 {
			t.Head.RemoteTasks, t.Head.Owner = remoteTasksOf(&t.Head), ""
		}
		t.ScheduleBy(t.Head.RetryAt)
		return nil
	})
	if errors.Is(err, checkpoint.ErrConflict) {
		return nil // the thread is no longer as it was
	}
	return err
}
