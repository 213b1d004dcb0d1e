package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// remoteWork is what a live run has under way. When no task can go on here and
// another server has workers for one, the run is handed off to it.
type remoteWork struct {
	mu           sync.Mutex
	activeCount  int // what is under way: the run itself, or in its place its tasks
	tasks        map[*remoteTask]struct{}
	destination  string // where the run moves, "" = nowhere
	isLeaving    bool   // it moves, wherever, because this server stops
	handOffTimer *time.Timer
	takenUpAt    time.Duration // Engine.uptime when the run was taken up
	handoffs     atomic.Int64  // how often it had moved then, until it comes further

	unserved       *placement.UnservedRun // why it releases its slot, nil = it does not
	fruitlessTurns atomic.Int32           // how often in a row it had a slot and came no further
	earlierReasons map[string]string      // by task: what readers were told in an earlier turn
	toldReasons    map[string]string      // and what they know now
}

// remoteTask is a task of a run that a worker runs.
type remoteTask struct {
	needs      []checkpoint.Capability // the server must have workers for all of it; the last one is its own
	mustStay   bool                    // it must not be given up to begin later
	isStranded atomic.Bool             // no worker of this server takes it
	workerWait runtime.WorkerWait
}

// TrackTask tracks a remote task until done is called.
func (s *session) TrackTask(needs []checkpoint.Capability, stays bool) (stranded *atomic.Bool, keeping *runtime.WorkerWait, done func()) {
	x := &s.remoteWork
	er := &remoteTask{needs: needs, mustStay: stays}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tasks == nil {
		x.tasks = make(map[*remoteTask]struct{}, 1)
	}
	x.tasks[er] = struct{}{}
	return &er.isStranded, &er.workerWait, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.tasks, er)
	}
}

// AddActive changes the number of active tasks by n.
func (s *session) AddActive(n int) {
	if s.engine.peers == nil || n == 0 {
		return
	}
	s.remoteWork.mu.Lock()
	s.remoteWork.activeCount += n
	s.remoteWork.mu.Unlock()
	if n < 0 {
		s.maybeHandOff()
	}
}

// LeaveServer moves the run when nothing goes on here any more, because this server
// stops.
func (s *session) LeaveServer() {
	if s.engine.peers == nil { // what goes on is not known
		s.stopWork(superstep.ErrServerDrains)
		return
	}
	s.remoteWork.mu.Lock()
	s.remoteWork.isLeaving = true
	s.remoteWork.mu.Unlock()
	s.maybeHandOff()
}

// NotifyStranded hands the run off if it can go on nowhere but at another server.
func (s *session) NotifyStranded() { s.maybeHandOff() }

// maybeHandOff hands the run off when no task goes on here and another server has
// workers for it.
func (s *session) maybeHandOff() {
	e, x := s.engine, &s.remoteWork
	if e.peers == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	to, idle := x.chooseDestination(e.peers, s.thread)
	if x.destination != "" || x.unserved != nil || idle == 0 || idle < x.activeCount {
		return
	}
	if x.isLeaving {
		x.destination = to
		s.stopWork(superstep.ErrServerDrains)
		return
	}
	if e.isDraining() {
		return
	}
	if to == "" {
		s.offerSlot()
		return
	}
	if wait := x.takenUpAt + handOffDelay(int(x.handoffs.Load()), e.opts.LeaseTTL) - e.uptime(); wait > 0 {
		if x.handOffTimer == nil {
			x.handOffTimer = time.AfterFunc(wait, contain.Func(s.maybeHandOff, contain.LogPanic(e.log, "a timer panicked")))
		} else {
			x.handOffTimer.Reset(wait)
		}
		return
	}
	x.destination = to
	s.stopWork(superstep.ErrMovedToWorkers)
}

// chooseDestination returns how many tasks do not go on here, and the best server
// for the run: the one with a task's worker attached, or the one with workers for
// most tasks. mu is held.
func (x *remoteWork) chooseDestination(p *placement.Peers, thread string) (to string, idle int) {
	var needs [][]checkpoint.Capability
	for er := range x.tasks {
		switch {
		case er.isStranded.Load():
			needs = append(needs, er.needs)
		case er.workerWait.Withheld.Load():
		default:
			continue
		}
		idle++
		if holder := er.workerWait.Holder.Load(); holder != nil && er.workerWait.Withheld.Load() {
			to = *holder
		}
	}
	if to == "" && len(needs) > 0 {
		to = p.ChooseServer(thread, needs)
	}
	return to, idle
}

// handOffDestination says where the run goes on, "" = unknown.
func (s *session) handOffDestination() string {
	s.remoteWork.mu.Lock()
	defer s.remoteWork.mu.Unlock()
	return s.remoteWork.destination
}

// stopTracking ends what follows the run here.
func (s *session) stopTracking() {
	s.remoteWork.mu.Lock()
	defer s.remoteWork.mu.Unlock()
	if s.remoteWork.handOffTimer != nil {
		s.remoteWork.handOffTimer.Stop()
	}
}

// startTracking begins to follow what the run has under way.
func (s *session) startTracking(moves int) {
	s.remoteWork.activeCount, s.remoteWork.takenUpAt = 1, s.engine.uptime()
	s.remoteWork.handoffs.Store(int64(moves))
	if u := s.engine.unserved.RemoveRun(s.thread); u != nil {
		s.remoteWork.earlierReasons = u.ToldReasons
		s.remoteWork.fruitlessTurns.Store(int32(u.FruitlessTurns))
	}
}

// noteProgress notes in a change that the run has come further since it moved.
func (s *session) noteProgress(t *commit.Tx) {
	if len(t.Tasks)+len(t.Checkpoints) > 0 {
		t.Head.Handoffs = 0
		t.ClearFaults()
		s.remoteWork.handoffs.Store(0)
		s.remoteWork.fruitlessTurns.Store(0)
	}
}

// WasTold reports whether readers were told in an earlier turn of the run why a task
// waits.
func (x *remoteWork) WasTold(task, why string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.earlierReasons[task] == why
	delete(x.earlierReasons, task)
	if known {
		x.setToldLocked(task, why)
	}
	return known
}

// SetTold records the reason that readers were told.
func (x *remoteWork) SetTold(task, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.setToldLocked(task, why)
}

func (x *remoteWork) setToldLocked(task, why string) {
	if x.toldReasons == nil {
		x.toldReasons = make(map[string]string, 1)
	}
	x.toldReasons[task] = why
}
