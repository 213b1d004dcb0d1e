package scheduler

import (
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
)

// The engine may fail whenever it processes a certain thread, because of a defect
// in the engine, in a graph or in a stored record. The scheduler quarantines such
// a thread, longer each time, and counts the failures in its head, for every
// server, for restarts and for callers. The entries in this process are for the
// metric, and for a store that refuses even that change.

// Pauses of a thread that can't be taken.
const (
	minQuarantine = time.Second
	maxQuarantine = 5 * time.Minute
	forgetAfter   = time.Minute // beyond the pause
)

// maxQuarantined is the number of such threads that a process remembers.
const maxQuarantined = 1024

// quarantine holds the threads that this process does not take for a while.
type quarantine struct {
	mu      sync.Mutex
	threads map[string]quarantineEntry
}

// quarantineEntry is the quarantine of one thread.
type quarantineEntry struct {
	count int
	until time.Duration // uptime of the engine
}

// pauseAfter returns the quarantine after so many failures in a row.
func pauseAfter(count int) time.Duration {
	return backoff.Policy{First: minQuarantine, Max: maxQuarantine}.Delay(count)
}

// isQuarantined reports whether a thread is still quarantined.
func (q *quarantine) isQuarantined(thread string, now time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.threads[thread].until > now
}

// removeThread ends the quarantine of a thread that has made progress.
func (q *quarantine) removeThread(thread string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.threads, thread)
}

// addFailure adds one failure of a thread and returns the number of failures.
// known is the number in its head.
func (q *quarantine) addFailure(thread string, known int, now time.Duration) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.threads == nil {
		q.threads = make(map[string]quarantineEntry)
	}
	if _, there := q.threads[thread]; !there && len(q.threads) >= maxQuarantined {
		q.evictEarliest()
	}
	n := max(q.threads[thread].count, known) + 1
	q.threads[thread] = quarantineEntry{count: n, until: now + pauseAfter(n)}
	return n
}

// evictEarliest forgets the thread that is looked at again first. The caller holds mu.
func (q *quarantine) evictEarliest() {
	first, found := "", false
	for thread, x := range q.threads {
		if !found || x.until < q.threads[first].until {
			first, found = thread, true
		}
	}
	delete(q.threads, first)
}

// pruneStale removes threads that have not failed again for longer than their
// quarantine. Another server processes them, or they no longer exist. It returns the
// number of remaining threads.
func (q *quarantine) pruneStale(now time.Duration) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for thread, x := range q.threads {
		if now > x.until+pauseAfter(x.count)+forgetAfter {
			delete(q.threads, thread)
		}
	}
	return len(q.threads)
}
