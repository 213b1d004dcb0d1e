package scheduler

import (
	"errors"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// round counts the refusals of the store while the scheduler processes a batch
// of threads.
type round struct {
	scheduler    *Scheduler
	refusedCount atomic.Int32
	isStoreFull  atomic.Bool // the store refused a change because it has no space
}

// addRefusal counts one refusal.
func (r *round) addRefusal(err error) {
	r.refusedCount.Add(1)
	if errors.Is(err, checkpoint.ErrStoreFull) {
		r.isStoreFull.Store(true)
	}
}

// isOver reports whether the store would refuse the rest as well. A single refusal is no
// proof, because another part of the store may take changes. A whole round of refusals
// is.
func (r *round) isOver() bool {
	n := r.refusedCount.Load()
	return n >= MaxParallelDue || n > 0 && r.isProbing()
}

// isProbing reports whether the scheduler tries threads one at a time.
func (r *round) isProbing() bool { return r.scheduler.storeBackoff.isRefusing() }

// finishRound ends the round.
func (r *round) finishRound() {
	if r.refusedCount.Load() > 0 {
		r.scheduler.storeBackoff.addRefusedRound(r.scheduler.opts.Uptime(), r.scheduler.opts.ScanInterval)
	}
}
