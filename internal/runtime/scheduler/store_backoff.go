package scheduler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
)

// A store that takes no changes would refuse each thread that is due, again and
// again. So the scheduler stops after a few refusals and pauses, longer each time;
// then one thread is enough to learn whether the store takes changes again. A
// change that the store takes, of whichever thread, ends that.

// maxPauseScans is the longest pause, in scan intervals.
const maxPauseScans = 8

// storeBackoff says when the scheduler may try the store again.
type storeBackoff struct {
	refusedRounds atomic.Int32 // in a row, in which the store refused changes

	mu            sync.Mutex
	minPauseUntil time.Duration // until then the scheduler pauses in any case; uptime of the engine
	pauseUntil    time.Duration // and until then while the store refuses changes
}

// addRefusedRound notes a round in which the store refused changes.
func (r *storeBackoff) addRefusedRound(now, interval time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.refusedRounds.Add(1)
	r.minPauseUntil = now + interval
	r.pauseUntil = now + backoff.Policy{First: interval, Max: maxPauseScans * interval}.Delay(int(n))
}

// endPause notes that the store takes changes.
func (r *storeBackoff) endPause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusedRounds.Store(0)
	r.pauseUntil = r.minPauseUntil
}

// remainingPause returns how long the scheduler still has to pause.
func (r *storeBackoff) remainingPause(now time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pauseUntil - now
}

// isRefusing reports whether the store refused changes in the last round.
func (r *storeBackoff) isRefusing() bool { return r.refusedRounds.Load() > 0 }
