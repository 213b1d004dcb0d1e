// Package scheduler holds what the scheduler remembers of threads between two looks at
// them: which are quarantined, and how long a store that refuses changes is left alone.
package scheduler

import (
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
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
	ForgetAfter   = time.Minute // beyond the pause
)

// maxQuarantined bounds how many such threads a process remembers.
const maxQuarantined = 1024

// Quarantine holds the threads that this process does not take for a while.
type Quarantine struct {
	mu      sync.Mutex
	threads map[string]QuarantineEntry
}

// QuarantineEntry is why and for how long one thread is left alone.
type QuarantineEntry struct {
	Count int
	until time.Duration // uptime of the engine
}

// PauseAfter is how long a thread is left alone after so many failures in a row.
func PauseAfter(count int) time.Duration {
	return backoff.Policy{First: minQuarantine, Max: maxQuarantine}.Delay(count)
}

// IsQuarantined reports whether a thread is still quarantined.
func (f *Quarantine) IsQuarantined(thread string, now time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.threads[thread].until > now
}

// RemoveThread ends the quarantine of a thread that has made progress.
func (f *Quarantine) RemoveThread(thread string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.threads, thread)
}

// AddFailure notes one more failure of a thread, of which its head knows some.
func (f *Quarantine) AddFailure(thread string, known int, now time.Duration) QuarantineEntry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.threads == nil {
		f.threads = make(map[string]QuarantineEntry)
	}
	if _, there := f.threads[thread]; !there && len(f.threads) >= maxQuarantined {
		f.evictEarliest()
	}
	n := max(f.threads[thread].Count, known) + 1
	next := QuarantineEntry{Count: n, until: now + PauseAfter(n)}
	f.threads[thread] = next
	return next
}

// evictEarliest forgets the thread that is looked at again first. The caller holds mu.
func (f *Quarantine) evictEarliest() {
	first, found := "", false
	for thread, x := range f.threads {
		if !found || x.until < f.threads[first].until {
			first, found = thread, true
		}
	}
	delete(f.threads, first)
}

// PruneStale forgets threads that have not failed again for longer than they were put
// off: another server attends to them, or they are gone. It returns how many
// are left.
func (f *Quarantine) PruneStale(now time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for thread, x := range f.threads {
		if now > x.until+PauseAfter(x.Count)+ForgetAfter {
			delete(f.threads, thread)
		}
	}
	return len(f.threads)
}
