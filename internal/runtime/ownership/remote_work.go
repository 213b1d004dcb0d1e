package ownership

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// remoteWork is what a live run has under way. When no task can go on here and
// another server has workers for one, the run is handed off to it.
type remoteWork struct {
	thread *heldThread
	stop   *runStop
	slot   *capacity.Holder // of the run

	mu           sync.Mutex
	activeCount  int // what is under way: the run itself, or in its place its tasks
	tasks        map[*remoteTask]struct{}
	destination  string // where the run moves, "" = nowhere
	isLeaving    bool   // it moves, wherever, because this server stops
	handOffTimer *time.Timer
	takenUpAt    time.Duration // uptime when the run was taken up
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
func (x *remoteWork) TrackTask(needs []checkpoint.Capability, stays bool) (stranded *atomic.Bool, keeping *runtime.WorkerWait, done func()) {
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
func (x *remoteWork) AddActive(n int) {
	if x.thread.opts.Peers == nil || n == 0 {
		return
	}
	x.mu.Lock()
	x.activeCount += n
	x.mu.Unlock()
	if n < 0 {
		x.maybeHandOff()
	}
}

// LeaveServer moves the run when nothing goes on here any more, because this server
// stops.
func (x *remoteWork) LeaveServer() {
	if x.thread.opts.Peers == nil { // what goes on is not known
		x.stop.stopWork(superstep.ErrServerDrains)
		return
	}
	x.mu.Lock()
	x.isLeaving = true
	x.mu.Unlock()
	x.maybeHandOff()
}

// NotifyStranded hands the run off if it can go on nowhere but at another server.
func (x *remoteWork) NotifyStranded() { x.maybeHandOff() }

// maybeHandOff hands the run off when no task goes on here and another server has
// workers for it.
func (x *remoteWork) maybeHandOff() {
	opts := x.thread.opts
	if opts.Peers == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	to, idle := x.chooseDestination()
	if x.destination != "" || x.unserved != nil || idle == 0 || idle < x.activeCount {
		return
	}
	if x.isLeaving {
		x.destination = to
		x.stop.stopWork(superstep.ErrServerDrains)
		return
	}
	if opts.Threads.IsDraining() {
		return
	}
	if to == "" {
		x.offerSlot()
		return
	}
	if wait := x.takenUpAt + handOffDelay(int(x.handoffs.Load()), opts.LeaseTTL) - opts.Uptime(); wait > 0 {
		if x.handOffTimer == nil {
			x.handOffTimer = time.AfterFunc(wait, contain.Func(x.maybeHandOff, contain.LogPanic(opts.Logger, "a timer panicked")))
		} else {
			x.handOffTimer.Reset(wait)
		}
		return
	}
	x.destination = to
	x.stop.stopWork(superstep.ErrMovedToWorkers)
}

// chooseDestination returns how many tasks do not go on here, and the best server
// for the run: the one with a task's worker attached, or the one with workers for
// most tasks. mu is held.
func (x *remoteWork) chooseDestination() (to string, idle int) {
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
		to = x.thread.opts.Peers.ChooseServer(x.thread.id, needs)
	}
	return to, idle
}

// handOffDestination says where the run goes on, "" = unknown.
func (x *remoteWork) handOffDestination() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.destination
}

// putHandOver leaves the run in a change to the server with its workers, or to the time
// when one may have come.
func (x *remoteWork) putHandOver(t *commit.Tx, run *checkpoint.Run) {
	if to := x.handOffDestination(); to != "" {
		x.noteProgress(t)
		putHandOff(t, to, x.thread.opts)
		return
	}
	x.putUnservedDue(t, run)
}

// stopTracking ends what follows the run here.
func (x *remoteWork) stopTracking() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.handOffTimer != nil {
		x.handOffTimer.Stop()
	}
}

// startTracking begins to follow what the run has under way.
func (x *remoteWork) startTracking(moves int) {
	x.activeCount, x.takenUpAt = 1, x.thread.opts.Uptime()
	x.handoffs.Store(int64(moves))
	if u := x.thread.opts.Unserved.RemoveRun(x.thread.id); u != nil {
		x.earlierReasons = u.ToldReasons
		x.fruitlessTurns.Store(int32(u.FruitlessTurns))
	}
}

// noteProgress notes in a change that the run has come further since it moved.
func (x *remoteWork) noteProgress(t *commit.Tx) {
	if len(t.Tasks)+len(t.Checkpoints) > 0 {
		t.Head.Handoffs = 0
		t.ClearFaults()
		x.handoffs.Store(0)
		x.fruitlessTurns.Store(0)
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

// listTold returns what readers know of why tasks wait.
func (x *remoteWork) listTold() map[string]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.toldReasons
}
