package scheduler

import (
	"errors"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// round counts what the store refused while the scheduler processed a batch of
// threads.
type round struct {
	scheduler    *Scheduler
	refusedCount atomic.Int32
	isStoreFull  atomic.Bool // for want of space
}

// addRefusal notes one refusal.
func (r *round) addRefusal(err error) {
	r.refusedCount.Add(1)
	if errors.Is(err, checkpoint.ErrStoreFull) {
		r.isStoreFull.Store(true)
	}
}

// isOver reports whether the rest would be refused as well. Another part of the
// store may take changes: one refusal is no proof until a whole round had them.
func (r *round) isOver() bool {
	n := r.refusedCount.Load()
	return n >= MaxParallelDue || n > 0 && r.isProbing()
}

// isProbing reports whether threads are tried one at a time.
func (r *round) isProbing() bool { return r.scheduler.storeBackoff.isRefusing() }

// finishRound ends the round.
func (r *round) finishRound() {
	if r.refusedCount.Load() > 0 {
		r.scheduler.storeBackoff.addRefusedRound(r.scheduler.opts.Uptime(), r.scheduler.opts.ScanInterval)
	}
}
