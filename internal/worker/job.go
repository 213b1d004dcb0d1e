package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// stage is how far a task has come.
type stage int

const (
	queued   stage = iota
	withheld       // a worker may have it from an earlier server: kept until that one comes back, or its lease is over
	offered        // on its way to a worker, of which nothing was heard about it
	started
	over
)

// job is a task from the moment it is asked for until its result is there.
// What follows done is guarded by Hub.mu.
type job struct {
	ctx   context.Context //nolint:containedctx // the job is the call, seen from the workers
	task  *runtime.Task
	key   string
	route route
	done  chan pregel.Result // takes one
	lane  *lane
	calls *calls
	// recorded are the memos of this attempt; they have a lock of their own.
	recorded *Memos
	// telling is the run being told that nobody can take the task.
	telling sync.WaitGroup

	stage      stage
	order      uint64
	token      string
	session    *Session // nil while nobody has it, or its stream is broken
	absent     string   // the worker that may have it though its stream is broken
	holder     string   // the server to which its worker is attached, when that is another one
	expiry     *time.Timer
	deliveries int
	losses     int
	lostWorker bool // the worker before was lost, and the run has not been told
	nacks      int
	avoid      map[*Session]struct{} // who has refused it for now
	told       bool                  // that nobody can take it
	stranded   bool                  // no worker here can take it
	blocked    int                   // graphs that it waits for
	lent       bool                  // runs on an endpoint
	via        string                // the lease whose result was answered with this task
	byCall     bool                  // the answer was that of a call, which no stream keeps in order
	last       bool                  // is being stopped: nobody else gets it
	stop       string                // why
	stopBy     time.Time             // until then its result is of use
}

func (h *Hub) newJob(ctx context.Context, t *runtime.Task) *job {
	j := &job{ctx: ctx, task: t, key: keyOf(t), route: routeOf(t), done: make(chan pregel.Result, 1), recorded: &Memos{}}
	j.lane = newLane(t.Effects, &h.events, h.log)
	j.calls = newCalls(ctx, t.Host, h.log)
	return j
}

// keyOf names a piece of work, over restarts too. A node that has got answers
// is another piece of work than before: a result from before must not pass for
// one from after. So is the same task in a copy of its thread.
func keyOf(t *runtime.Task) string {
	switch {
	case t.Reduce != nil:
		return t.ID + ":reduce:" + t.Reduce.Channel + ":" + threadOf(t)
	case t.Router != "":
		return t.ID + ":route:" + t.Branch + ":" + threadOf(t)
	}
	return placeOf(t) + ":" + passOf(t)
}

// nodeKey marks the keys of nodes.
const nodeKey = ":run"

// placeOf is what the keys of all passes of a node have in common.
func placeOf(t *runtime.Task) string { return t.ID + nodeKey + ":" + threadOf(t) }

// threadOf stands for the thread in a key: its id may look like any part of one.
func threadOf(t *runtime.Task) string {
	sum := sha256.Sum256([]byte(t.Thread))
	return hex.EncodeToString(sum[:8])
}

// passOf tells the passes of a node that is interrupted from each other.
func passOf(t *runtime.Task) string {
	if len(t.Journal.Answers)+len(t.Waited) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, a := range t.Journal.Answers {
		sum.Write([]byte(a.Interrupt + "\n"))
	}
	sum.Write([]byte("\n"))
	for _, id := range t.Waited {
		sum.Write([]byte(id + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// assignment is what the worker is told. mu is held.
func (j *job) assignment(ttl time.Duration) Assignment {
	a := Assignment{Token: j.token, TTL: ttl, Delivery: j.deliveries, Task: j.task, Memos: j.recorded.list()}
	if deadline, ok := j.ctx.Deadline(); ok {
		a.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	return a
}

// offer leases a task to a worker. mu is held.
func (h *Hub) offer(j *job, s *Session) {
	j.deliveries++
	switch {
	case j.lostWorker:
		j.lostWorker = false
		j.lane.mark(runtime.EventLost)
	case j.deliveries > 1:
		j.lane.mark(runtime.EventAnew)
	}
	h.lend(j, s, h.sign(j))
	j.stage = offered
	s.give(j, j.assignment(h.opts.LeaseTTL))
}

// lend makes a lease hold. mu is held.
func (h *Hub) lend(j *job, s *Session, token string) {
	j.token, j.session = token, s
	h.strand(j, false)
	h.jobs[token] = j
	if s != nil {
		s.gain(j)
	}
	j.expiry = time.AfterFunc(h.opts.LeaseTTL, h.contained(func() { h.expire(j, token) }))
}

// renew prolongs a lease. mu is held.
func (h *Hub) renew(j *job) {
	if j.expiry != nil {
		j.expiry.Reset(h.opts.LeaseTTL)
	}
}

// release ends the lease of a task; what comes under it from now on is
// refused. mu is held.
func (h *Hub) release(j *job) {
	h.rejoin(j)
	h.endsWithholding(j)
	if j.expiry != nil {
		j.expiry.Stop()
		j.expiry = nil
	}
	delete(h.jobs, j.token)
	h.endAbsence(j)
	if j.session != nil {
		j.session.drop(j)
	}
	j.session, j.token = nil, ""
}

// expire takes a task away from a worker that has been silent about it.
func (h *Hub) expire(j *job, token string) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if j.token != token || j.stage == over {
		return
	}
	if h.seekHolder(j) { // the run is about to go to where the worker is
		if j.session != nil { // what is left of that stream is dead
			h.detach(j)
		}
		h.renew(j)
		return
	}
	s := j.session
	h.log.Warn("a worker was silent about a task for longer than its lease", j.fields()...)
	h.lose(j)
	if s != nil {
		s.unsend(token)
		h.offerTo(s)
	}
}

// lose gives a task whose worker is lost to another one. mu is held.
func (h *Hub) lose(j *job) {
	j.losses++
	h.noteLoss(j)
	if j.losses >= h.opts.Losses {
		h.finish(j, failed("WorkerLost", "every worker that was given the task was lost while it ran; see the workers' logs"))
		return
	}
	h.requeue(j)
}

// noteLoss notes that a worker which may have run a task was lost. mu is held.
func (h *Hub) noteLoss(j *job) {
	j.lostWorker = true
	h.lost.Add(1)
}

// requeue puts a task back to where it was in the queue. Graphs that it has
// called must stop before anybody runs it again. mu is held.
func (h *Hub) requeue(j *job) {
	if j.last {
		h.release(j) // before finish, so that a result under the old lease does not count
		h.finish(j, failed("Cancelled", "the task was stopped, and then its worker gave it up"))
		return
	}
	h.release(j)
	j.stage = queued
	if j.calls.idle() {
		h.enqueue(j)
		h.dispatch(j.route)
		return
	}
	go h.contained(func() {
		j.calls.restart()
		h.mu.Lock()
		defer h.unlockAndTell()
		if j.stage == queued {
			h.enqueue(j)
			h.dispatch(j.route)
		}
	})()
}

// end notes that a task is not asked for any more. mu is held.
func (h *Hub) end(j *job) {
	j.stage = over
	if j.stranded {
		j.stranded = false
		h.unserved.Add(-1)
	}
	if h.byKey[j.key] == j {
		delete(h.byKey, j.key)
	}
}

// finish hands over the result of a task. mu is held.
func (h *Hub) finish(j *job, r pregel.Result) {
	if j.stage == over {
		return
	}
	if j.token != "" {
		h.settled.add(j.token)
	}
	h.release(j)
	h.dequeue(j)
	h.end(j)
	j.done <- r
}
