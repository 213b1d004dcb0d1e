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

// remoteWork is the record of the running tasks of a live run. When no task can go on here and
// another server has workers for a task, the run is handed off to it.
type remoteWork struct {
	thread *heldThread
	stop   *runStop
	slot   *capacity.Holder // of the run

	mu           sync.Mutex
	activeCount  int // number of active parts: the run itself, or in its place its tasks
	tasks        map[*remoteTask]struct{}
	destination  string // where the run moves, "" = nowhere
	isLeaving    bool   // it moves, wherever, because this server stops
	handOffTimer *time.Timer
	takenUpAt    time.Duration // uptime when the run was taken up
	handoffs     atomic.Int64  // how often it had moved then, until it comes further

	unserved       *placement.UnservedRun // why it releases its slot, nil = it does not
	fruitlessTurns atomic.Int32           // how often in a row it had a slot and came no further
	earlierReasons map[string]string      // by task: the reason that the log has from an earlier turn
	loggedReasons  map[string]string      // by task: the reason that the log has, as far as this turn knows
}

// remoteTask is a task of a run that a worker runs.
type remoteTask struct {
	needs      []checkpoint.Capability // the server must have workers for all of them; the last is its own
	mustStay   bool                    // it must not be given up to begin later
	isStranded atomic.Bool             // no worker of this server takes it
	workerWait runtime.WorkerWait
}

// TrackTask adds a remote task to the running tasks, until the caller calls done. needs
// lists the capabilities that the workers of a server must have, that of the task last.
// A task that must stay is not given up to begin later. The caller sets stranded when no
// worker of this server takes the task, and wait when the task waits for a certain
// worker.
func (r *remoteWork) TrackTask(
	needs []checkpoint.Capability, mustStay bool,
) (stranded *atomic.Bool, wait *runtime.WorkerWait, done func()) {
	task := &remoteTask{needs: needs, mustStay: mustStay}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = make(map[*remoteTask]struct{}, 1)
	}
	r.tasks[task] = struct{}{}
	return &task.isStranded, &task.workerWait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tasks, task)
	}
}

// AddActive changes the number of active tasks by n.
func (r *remoteWork) AddActive(n int) {
	if r.thread.opts.Peers == nil || n == 0 {
		return
	}
	r.mu.Lock()
	r.activeCount += n
	r.mu.Unlock()
	if n < 0 {
		r.maybeHandOff()
	}
}

// LeaveServer moves the run when nothing goes on here any more, because this server
// stops.
func (r *remoteWork) LeaveServer() {
	if r.thread.opts.Peers == nil { // the other servers are not known
		r.stop.stopWork(superstep.ErrServerDrains)
		return
	}
	r.mu.Lock()
	r.isLeaving = true
	r.mu.Unlock()
	r.maybeHandOff()
}

// NotifyStranded hands the run off if it can go on nowhere but at another server.
func (r *remoteWork) NotifyStranded() { r.maybeHandOff() }

// maybeHandOff hands the run off when no task goes on here and another server has
// workers for it.
func (r *remoteWork) maybeHandOff() {
	opts := r.thread.opts
	if opts.Peers == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	to, idle := r.chooseDestination()
	if r.destination != "" || r.unserved != nil || idle == 0 || idle < r.activeCount {
		return
	}
	if r.isLeaving {
		r.destination = to
		r.stop.stopWork(superstep.ErrServerDrains)
		return
	}
	if opts.Threads.IsDraining() {
		return
	}
	if to == "" {
		r.offerSlot()
		return
	}
	if wait := r.takenUpAt + handOffDelay(int(r.handoffs.Load()), opts.LeaseTTL) - opts.Uptime(); wait > 0 {
		if r.handOffTimer == nil {
			r.handOffTimer = time.AfterFunc(wait, contain.Func(r.maybeHandOff, contain.LogPanic(opts.Logger, "a timer panicked")))
		} else {
			r.handOffTimer.Reset(wait)
		}
		return
	}
	r.destination = to
	r.stop.stopWork(superstep.ErrMovedToWorkers)
}

// chooseDestination returns how many tasks do not go on here, and the best server for
// the run: the server with a task's worker attached, or the server with workers for most
// tasks. mu is held.
func (r *remoteWork) chooseDestination() (to string, idle int) {
	var needs [][]checkpoint.Capability
	for task := range r.tasks {
		switch {
		case task.isStranded.Load():
			needs = append(needs, task.needs)
		case task.workerWait.Withheld.Load():
		default:
			continue
		}
		idle++
		if holder := task.workerWait.Holder.Load(); holder != nil && task.workerWait.Withheld.Load() {
			to = *holder
		}
	}
	if to == "" && len(needs) > 0 {
		to = r.thread.opts.Peers.ChooseServer(r.thread.id, needs)
	}
	return to, idle
}

// handOffDestination returns the server where the run goes on, "" = unknown.
func (r *remoteWork) handOffDestination() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.destination
}

// putHandOver leaves the run in a change to the server with its workers, or to the time
// when such a server may have come.
func (r *remoteWork) putHandOver(t *commit.Tx, run *checkpoint.Run) {
	if to := r.handOffDestination(); to != "" {
		r.noteProgress(t)
		putHandOff(t, to, r.thread.opts)
		return
	}
	r.putUnservedDue(t, run)
}

// stopTracking stops following the run here.
func (r *remoteWork) stopTracking() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handOffTimer != nil {
		r.handOffTimer.Stop()
	}
}

// startTracking begins to follow the running tasks of the run.
func (r *remoteWork) startTracking(moves int) {
	r.activeCount, r.takenUpAt = 1, r.thread.opts.Uptime()
	r.handoffs.Store(int64(moves))
	if u := r.thread.opts.Unserved.RemoveRun(r.thread.id); u != nil {
		r.earlierReasons = u.LoggedReasons
		r.fruitlessTurns.Store(int32(u.FruitlessTurns))
	}
}

// noteProgress notes in a change that the run has come further since it moved.
func (r *remoteWork) noteProgress(t *commit.Tx) {
	if len(t.Tasks)+len(t.Checkpoints) > 0 {
		t.Head.Handoffs = 0
		t.ClearFaults()
		r.handoffs.Store(0)
		r.fruitlessTurns.Store(0)
	}
}

// CarryReason reports whether the log has this reason for the wait of a task from an
// earlier turn of the run, and takes it over into this turn. An event would repeat it.
func (r *remoteWork) CarryReason(task, why string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.earlierReasons[task] == why
	delete(r.earlierReasons, task)
	if known {
		r.setReasonLocked(task, why)
	}
	return known
}

// SetReason records that the log has this reason for the wait of a task.
func (r *remoteWork) SetReason(task, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setReasonLocked(task, why)
}

func (r *remoteWork) setReasonLocked(task, why string) {
	if r.loggedReasons == nil {
		r.loggedReasons = make(map[string]string, 1)
	}
	r.loggedReasons[task] = why
}

// listReasons returns by task the reasons that the log has for the wait. The turn of the
// run must have ended: the map is not a copy.
func (r *remoteWork) listReasons() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loggedReasons
}
