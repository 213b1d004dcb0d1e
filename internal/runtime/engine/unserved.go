package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// A run whose tasks all wait for workers that no server has needs no server to drive
// it. Where places are short it gives its own up: it ends here as in a drain, and its
// thread is due after a pause. It comes to the end of the line as soon as a worker for it
// registers here, and is left to another server that has one. The pauses are for what
// this server does not hear of.

// maxUnservedPause is the longest pause of a thread whose run waits for workers.
const maxUnservedPause = time.Minute

// maxFruitlessTurns is from how many turns without progress on a run is not called when
// workers change, but after its pause: they may not be such as it needs.
const maxFruitlessTurns = 3

// maxUnservedRuns bounds how many such runs a process keeps.
const maxUnservedRuns = 1 << 16

// unservedRun is a run that gave its slot up.
type unservedRun struct {
	needs          []checkpoint.Capability // of its tasks
	toldReasons    map[string]string       // by task: what readers know of why it waits
	fruitlessTurns int                     // how often in a row it had a slot and came no further
	checkCount     int                     // how often it was looked at since
	deadline       time.Time               // of the run; zero = none
	revision       uint64                  // of the head, as long as no call changes the thread
	order          uint64
	recheckAt      time.Duration // when it is looked at again at the latest; Engine.uptime
}

// pauseTime is how long the run is left alone if no worker registers.
func (u *unservedRun) pauseTime() time.Duration {
	return min(scheduler.PauseAfter(u.fruitlessTurns+u.checkCount), maxUnservedPause)
}

// unservedRuns are those that released their slots, by thread.
type unservedRuns struct {
	isCheckNeeded atomic.Bool  // workers have changed since the last check
	taskCount     atomic.Int64 // that wait so

	mu       sync.Mutex
	threads  map[string]*unservedRun
	order    uint64
	prunedAt time.Duration
}

// addRun keeps a run. Of those beyond maxUnservedRuns only the store knows.
func (r *unservedRuns) addRun(thread string, u *unservedRun, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.threads) >= maxUnservedRuns {
		return
	}
	if r.threads == nil {
		r.threads = make(map[string]*unservedRun)
	}
	r.order++
	u.order, u.recheckAt = r.order, now+u.pauseTime()
	r.threads[thread] = u
	r.taskCount.Add(int64(len(u.needs)))
}

// findRun is a copy of what is known of a thread.
func (r *unservedRuns) findRun(thread string) (u unservedRun, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.threads[thread]; x != nil {
		return *x, true
	}
	return unservedRun{}, false
}

// removeRun forgets a thread and returns what was known of it, nil for nothing.
func (r *unservedRuns) removeRun(thread string) *unservedRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.threads[thread]
	r.removeLocked(thread)
	return u
}

// removeLocked does so. The caller holds mu.
func (r *unservedRuns) removeLocked(thread string) {
	if u := r.threads[thread]; u != nil {
		r.taskCount.Add(-int64(len(u.needs)))
		delete(r.threads, thread)
	}
}

// noteCheck records that a thread is left alone again, and at which revision.
func (r *unservedRuns) noteCheck(thread string, revision uint64, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.threads[thread]; u != nil {
		u.checkCount++
		u.revision, u.recheckAt = revision, now+u.pauseTime()
	}
}

// countTasks is how many tasks wait for workers so.
func (r *unservedRuns) countTasks() int { return int(r.taskCount.Load()) }

// listServed lists the threads for which there is a worker, in the order in which
// they released their slots.
func (r *unservedRuns) listServed(now time.Duration, served func(*unservedRun) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var threads []string
	for thread, u := range r.threads {
		if (u.fruitlessTurns < maxFruitlessTurns || now >= u.recheckAt) && served(u) {
			threads = append(threads, thread)
		}
	}
	slices.SortFunc(threads, func(a, b string) int { return cmp.Compare(r.threads[a].order, r.threads[b].order) })
	return threads
}

// PruneStale forgets, once a minute, what no sweep has looked at for long: other servers
// attend to it, or it is gone.
func (r *unservedRuns) pruneStale(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now-r.prunedAt < scheduler.ForgetAfter {
		return
	}
	r.prunedAt = now
	for thread, u := range r.threads {
		if now > u.recheckAt+maxUnservedPause+scheduler.ForgetAfter {
			r.removeLocked(thread)
		}
	}
}

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
		x.unserved = &unservedRun{needs: needs, fruitlessTurns: int(x.fruitlessTurns.Load()) + 1}
		s.stopWork(superstep.ErrUnserved)
	}
}

// ReconsiderSlot has the session offer its slot if it can, without waiting for that.
func (s *session) ReconsiderSlot() {
	go contain.Func(s.maybeHandOff, contain.LogPanic(s.log, "asking a run for its place panicked"))()
}

// unservedRun is what is known of the run if it releases its slot, else nil.
func (s *session) unservedRun() *unservedRun {
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
	t.Head.Due = t.Now.Add(u.pauseTime())
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
	u.deadline, u.revision = l.Run().Deadline, head.Revision
	s.remoteWork.mu.Lock()
	u.toldReasons = s.remoteWork.toldReasons
	s.remoteWork.mu.Unlock()
	s.unserved = u
	s.log.Info("run gives its place up until a worker comes")
}

// recheckUnserved has the scheduler check the runs that wait for workers. It does
// not block.
func (e *Engine) recheckUnserved() {
	if !e.unservedRuns.isCheckNeeded.Swap(true) {
		e.wakeScheduler()
	}
}

// coversAny reports whether a worker of this server takes a task of a run.
func (e *Engine) coversAny(u *unservedRun) bool {
	return slices.ContainsFunc(u.needs, e.peers.CoversHere)
}

// queueServed queues the threads whose runs have workers here for a slot, and hands
// others off to servers with workers for them.
func (e *Engine) queueServed(ctx context.Context) {
	if e.peers == nil {
		return
	}
	e.unservedRuns.pruneStale(e.uptime())
	if !e.unservedRuns.isCheckNeeded.Swap(false) {
		return
	}
	known := make(map[checkpoint.Capability]bool)
	here := func(need checkpoint.Capability) bool {
		takes, ok := known[need]
		if !ok {
			takes = e.peers.CoversHere(need)
			known[need] = takes
		}
		return takes
	}
	e.capacity.EnqueueForSlots(e.unservedRuns.listServed(e.uptime(), func(u *unservedRun) bool { return slices.ContainsFunc(u.needs, here) }))
	if len(e.peers.OtherMembers()) == 0 {
		return
	}
	elsewhere := e.unservedRuns.listServed(e.uptime(), func(u *unservedRun) bool {
		return !slices.ContainsFunc(u.needs, here) && slices.ContainsFunc(u.needs, func(need checkpoint.Capability) bool { return e.peers.Cover(need) })
	})
	r := dueRound{engine: e}
	e.processThreads(ctx, elsewhere, &r)
	r.finishRound()
}

// isStillUnserved reports whether the run of a thread that no call has changed since
// waits for workers that this server does not have.
func (e *Engine) isStillUnserved(head *checkpoint.Head) bool {
	u, known := e.unservedRuns.findRun(head.Thread)
	late := !u.deadline.IsZero() && !u.deadline.After(head.Now)
	return known && u.revision == head.Revision && !late && !e.coversAny(&u)
}

// postponeUnserved leaves such a thread to a server that has workers for it, or alone for a
// longer while. Interrupts that expire meanwhile are attended to.
func (e *Engine) postponeUnserved(ctx context.Context, head checkpoint.Head) error {
	u, _ := e.unservedRuns.findRun(head.Thread)
	needs := make([][]checkpoint.Capability, len(u.needs))
	for i := range needs {
		needs[i] = u.needs[i : i+1]
	}
	if to := e.peers.ChooseServer(head.Thread, needs); to != "" {
		return e.handOffDueThread(ctx, head, to)
	}
	u.checkCount++
	next, err := e.committer.TryChange(ctx, head, func(t *commit.Tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.RemoteTasks = head.Updated, "", superstep.RemoteTasksOf(&head)
		t.Head.Due = t.Now.Add(u.pauseTime())
		t.ScheduleBy(u.deadline)
		if head.Open == 0 {
			return nil
		}
		open, err := e.reader.ListOpenInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		if late := takeExpired(t, open); len(late) > 0 {
			return e.putExpired(ctx, t, late)
		}
		return nil
	})
	if err == nil {
		e.unservedRuns.noteCheck(head.Thread, next.Revision, e.uptime())
	}
	return err
}
