package holdings

import (
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

const (
	// tallyAge is how long a count of the store is used. Servers on one store don't know of
	// each other's additions for so long.
	tallyAge = time.Second
	// refusalAge is how old a count must be to be read again before a call is refused:
	// a tenant at its limit must not have every call count.
	refusalAge = 100 * time.Millisecond
	// restFactor is how many times as long as a read the time between two reads is at
	// least: a tenant that has much must not occupy the store.
	restFactor = 10
)

// tally is how much a tenant holds of one kind.
type tally struct {
	of      runtime.Holding
	reading chan struct{} // holds a value while the store is read

	mu         sync.Mutex
	isRead     bool
	readAt     time.Duration // uptime before the store was read
	readTook   time.Duration
	stored     int  // what the store had then
	isClipped  bool // it may have more
	change     int  // what this server has added since, and removed
	pending    int  // what it is about to add
	isOutdated bool // there may be less
}

// verdict is the answer of a tally to something that is about to be added.
type verdict int

const (
	added   verdict = iota
	full            // the tenant holds as much as it may
	unknown         // the store has to be read
)

// tryAdd adds pending things where the limit allows it.
func (t *tally) tryAdd(now time.Duration, most int64, more int) verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch hasRoom := int64(t.countHeld()) < most; {
	case t.mustRead(now, hasRoom):
		return unknown
	case !hasRoom:
		return full
	}
	t.pending += more
	return added
}

// countHeld returns how much the tenant holds. What was removed while the store counted may be
// missing from what it had already. The lock is held.
func (t *tally) countHeld() int { return max(0, t.stored+t.change) + t.pending }

// lookUpCount returns the count, if the store was read.
func (t *tally) lookUpCount() (n int, isRead bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.countHeld(), t.isRead
}

// mustRead reports whether the count is too old for an answer. The lock is held.
func (t *tally) mustRead(now time.Duration, hasRoom bool) bool {
	age := now - t.readAt
	if t.isRead && age < restFactor*t.readTook {
		return false
	}
	return !t.isRead || age >= tallyAge || !hasRoom && (t.isOutdated || age >= refusalAge)
}

// settlePending ends what tryAdd began.
func (t *tally) settlePending(isMade bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending--
	if isMade {
		t.change++
	}
}

// adjustCount notes which questions this server has added, or removed. What was removed of a
// clipped number says nothing about the rest.
func (t *tally) adjustCount(change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if change < 0 && t.isClipped {
		t.isOutdated = true
		return
	}
	t.change += change
}

// markOutdated notes that there may be less than the count says.
func (t *tally) markOutdated() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isOutdated = true
}

// beginRead reports whether the store still has to be read. before is what endRead takes.
func (t *tally) beginRead(now time.Duration, most int64) (before tallyRead, needed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.mustRead(now, int64(t.countHeld()) < most) {
		return tallyRead{}, false
	}
	t.isOutdated = false
	return tallyRead{at: now, change: t.change}, true
}

// tallyRead is the beginning of a read.
type tallyRead struct {
	at     time.Duration
	change int // which the store has already
}

// endRead takes over what the store has counted.
func (t *tally) endRead(now time.Duration, before tallyRead, n int, isClipped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isRead, t.readAt, t.readTook, t.stored, t.isClipped = true, before.at, now-before.at, n, isClipped
	t.change -= before.change
}

// isUseless reports whether the count has to be read again for any answer.
func (t *tally) isUseless(now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending == 0 && (!t.isRead || now-t.readAt >= max(tallyAge, restFactor*t.readTook))
}
