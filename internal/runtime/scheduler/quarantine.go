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
	until time.Duration // uptime of the engine
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

// addFailure notes one more failure of a thread, of which its head knows some, and
// returns how many there were.
func (f *quarantine) addFailure(thread string, known int, now time.Duration) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.threads == nil {
		f.threads = make(map[string]quarantineEntry)
	}
	if _, there := f.threads[thread]; !there && len(f.threads) >= maxQuarantined {
		f.evictEarliest()
	}
	n := max(f.threads[thread].count, known) + 1
	f.threads[thread] = quarantineEntry{count: n, until: now + pauseAfter(n)}
	return n
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
