package scheduler

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
)

// A store that takes no changes would refuse each due thread again and again. So
// the scheduler pauses after a few refusals, longer each time. Then it tries one
// thread. A change of any thread that the store accepts ends the pauses.

// maxPauseScans is the longest pause, in scan intervals.
const maxPauseScans = 8

// storeBackoff decides when the scheduler may try the store again.
type storeBackoff struct {
	refusedRounds atomic.Int32 // in a row, in which the store refused changes

	mu            sync.Mutex
	minPauseUntil time.Duration // the scheduler pauses at least until then; uptime of the engine
	pauseUntil    time.Duration // and until then while the store refuses changes
}

// addRefusedRound records a round in which the store refused changes.
func (s *storeBackoff) addRefusedRound(now, interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.refusedRounds.Add(1)
	s.minPauseUntil = now + interval
	s.pauseUntil = now + backoff.Policy{First: interval, Max: maxPauseScans * interval}.Delay(int(n))
}

// endPause ends the pause after the store has accepted a change.
func (s *storeBackoff) endPause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusedRounds.Store(0)
	s.pauseUntil = s.minPauseUntil
}

// remainingPause returns the remaining time of the pause.
func (s *storeBackoff) remainingPause(now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pauseUntil - now
}

// isRefusing reports whether the store refused changes in the last round.
func (s *storeBackoff) isRefusing() bool { return s.refusedRounds.Load() > 0 }
