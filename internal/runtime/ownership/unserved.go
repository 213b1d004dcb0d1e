package ownership

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// A session offers its slot when its run only waits for workers that no server has:
// placement.UnservedRuns then decides about the run.

// offerSlot offers the run's slot if slots are short and the run only waits for
// workers. remoteWork.mu is held.
func (r *remoteWork) offerSlot() {
	needs := make([]checkpoint.Capability, 0, len(r.tasks))
	for er := range r.tasks {
		if er.mustStay || !er.isStranded.Load() {
			return
		}
		needs = append(needs, er.needs[len(er.needs)-1])
	}
	if r.slot.OfferSlot() {
		r.unserved = &placement.UnservedRun{Needs: needs, FruitlessTurns: int(r.fruitlessTurns.Load()) + 1}
		r.stop.stopWork(superstep.ErrUnserved)
	}
}

// ReconsiderSlot has the session offer its slot if it can, without waiting for that.
func (r *remoteWork) ReconsiderSlot() {
	go contain.Func(r.maybeHandOff, contain.LogPanic(r.thread.log, "asking a run for its place panicked"))()
}

// unservedRun returns the record of the run for the case that it releases its slot, else
// nil.
func (r *remoteWork) unservedRun() *placement.UnservedRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unserved
}

// putUnservedDue makes a run that releases its slot due after its pause, or earlier
// where an interrupt expires or its time is over.
func (r *remoteWork) putUnservedDue(t *commit.Tx, run *checkpoint.Run) {
	u := r.unservedRun()
	if u == nil || t.Head.Cancel != nil {
		return
	}
	appointed := t.Head.Due
	t.Head.Due = t.Now.Add(u.PauseTime())
	if t.Head.Open > 0 {
		t.ScheduleBy(appointed)
	}
	t.ScheduleBy(run.Deadline)
}
