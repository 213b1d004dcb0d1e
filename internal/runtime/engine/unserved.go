package engine

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
func (s *session) offerSlot() {
	x := &s.remoteWork
	needs := make([]checkpoint.Capability, 0, len(x.tasks))
	for er := range x.tasks {
		if er.mustStay || !er.isStranded.Load() {
			return
		}
		needs = append(needs, er.needs[len(er.needs)-1])
	}
	if s.capacity.OfferSlot() {
		x.unserved = &placement.UnservedRun{Needs: needs, FruitlessTurns: int(x.fruitlessTurns.Load()) + 1}
		s.stopWork(superstep.ErrUnserved)
	}
}

// ReconsiderSlot has the session offer its slot if it can, without waiting for that.
func (s *session) ReconsiderSlot() {
	go contain.Func(s.maybeHandOff, contain.LogPanic(s.log, "asking a run for its place panicked"))()
}

// unservedRun is what is known of the run if it releases its slot, else nil.
func (s *session) unservedRun() *placement.UnservedRun {
	s.remoteWork.mu.Lock()
	defer s.remoteWork.mu.Unlock()
	return s.remoteWork.unserved
}

// putUnservedDue makes a run that releases its slot due after its pause, or earlier
// where an interrupt expires or its time is over.
func (s *session) putUnservedDue(t *commit.Tx, run *checkpoint.Run) {
	u := s.unservedRun()
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

// waitForWorkers queues a run that has given its slot up for workers when its
// session ends.
func (s *session) waitForWorkers(l *superstep.Loop, v *superstep.End, head *checkpoint.Head) {
	u := s.unservedRun()
	if u == nil || !v.IsCommitted || v.State != checkpoint.RunRunning || head.Cancel != nil || head.Owner != "" || head.PreferredOwner != "" {
		return
	}
	u.Deadline, u.Revision = l.Run().Deadline, head.Revision
	s.remoteWork.mu.Lock()
	u.ToldReasons = s.remoteWork.toldReasons
	s.remoteWork.mu.Unlock()
	s.unserved = u
	s.log.Info("run gives its place up until a worker comes")
}

// queueServed queues the threads whose runs have workers here for a slot. It returns
// those whose workers are at other servers alone.
func (e *Engine) queueServed() (elsewhere []string) {
	if e.peers == nil {
		return nil
	}
	here, elsewhere := e.peers.ListServed(e.uptime())
	if len(here) > 0 {
		e.capacity.EnqueueForSlots(here)
	}
	return elsewhere
}
