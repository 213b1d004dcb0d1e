package ownership

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// A session offers its slot when its run only waits for workers that no server has:
// placement.UnservedRuns says what becomes of the run then.

// offerSlot offers the run's slot if slots are short and the run only waits for
// workers. remoteWork.mu is held.
func (x *remoteWork) offerSlot() {
	needs := make([]checkpoint.Capability, 0, len(x.tasks))
	for er := range x.tasks {
		if er.mustStay || !er.isStranded.Load() {
			return
		}
		needs = append(needs, er.needs[len(er.needs)-1])
	}
	if x.slot.OfferSlot() {
		x.unserved = &placement.UnservedRun{Needs: needs, FruitlessTurns: int(x.fruitlessTurns.Load()) + 1}
		x.stop.stopWork(superstep.ErrUnserved)
	}
}

// ReconsiderSlot has the session offer its slot if it can, without waiting for that.
func (x *remoteWork) ReconsiderSlot() {
	go contain.Func(x.maybeHandOff, contain.LogPanic(x.thread.log, "asking a run for its place panicked"))()
}

// unservedRun is what is known of the run if it releases its slot, else nil.
func (x *remoteWork) unservedRun() *placement.UnservedRun {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unserved
}

// putUnservedDue makes a run that releases its slot due after its pause, or earlier
// where an interrupt expires or its time is over.
func (x *remoteWork) putUnservedDue(t *commit.Tx, run *checkpoint.Run) {
	u := x.unservedRun()
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
