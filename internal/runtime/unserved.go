package runtime

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
)

// A run whose tasks all wait for workers that no server has needs no server to drive
// it. Where places are short it gives its own up: it ends here as in a drain, and its
// thread is due after a pause. It comes to the end of the line as soon as a worker for it
// registers here, and is left to another server that has one. The pauses are for what
// this server does not hear of.

// errUnserved stops a run that gives its place up.
var errUnserved = &handOverError{why: "no server has a worker for what the run waits for"}

// longestAbsence is the longest pause of a thread whose run waits for workers.
const longestAbsence = time.Minute

// manyVain is from how many turns without progress on a run is not called when
// workers change, but after its pause: they may not be such as it needs.
const manyVain = 3

// unserved is what is known of a run that gave its place up.
type unserved struct {
	needs    []checkpoint.Served // of its tasks
	told     map[string]string   // by task: what readers know of why it waits
	vain     int                 // how often in a row it had a place and came no further
	looks    int                 // how often it was looked at since
	deadline time.Time           // of the run; zero = none
	revision uint64              // of the head, as long as no call changes the thread
	order    uint64
	until    time.Duration // when it is looked at again at the latest; Engine.uptime
}

// pause is how long the run is left alone if nothing is heard of workers.
func (u *unserved) pause() time.Duration { return min(pauseAfter(u.vain+u.looks), longestAbsence) }

// unservedRuns are those that gave their places up, by thread.
type unservedRuns struct {
	stirred atomic.Bool  // workers have changed since the sweeper looked
	tasks   atomic.Int64 // that wait so

	mu      sync.Mutex
	threads map[string]*unserved
	order   uint64
	pruned  time.Duration
}

// add keeps a run. Of those beyond maxLine only the store knows.
func (r *unservedRuns) add(thread string, u *unserved, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.threads) >= maxLine {
		return
	}
	if r.threads == nil {
		r.threads = make(map[string]*unserved)
	}
	r.order++
	u.order, u.until = r.order, now+u.pause()
	r.threads[thread] = u
	r.tasks.Add(int64(len(u.needs)))
}

// get is a copy of what is known of a thread.
func (r *unservedRuns) get(thread string) (u unserved, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.threads[thread]; x != nil {
		return *x, true
	}
	return unserved{}, false
}

// remove forgets a thread and returns what was known of it, nil for nothing.
func (r *unservedRuns) remove(thread string) *unserved {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.threads[thread]
	r.forget(thread)
	return u
}

// forget does so. The caller holds mu.
func (r *unservedRuns) forget(thread string) {
	if u := r.threads[thread]; u != nil {
		r.tasks.Add(-int64(len(u.needs)))
		delete(r.threads, thread)
	}
}

// looked notes that a thread is left alone again, and at which revision.
func (r *unservedRuns) looked(thread string, revision uint64, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.threads[thread]; u != nil {
		u.looks++
		u.revision, u.until = revision, now+u.pause()
	}
}

// count is how many tasks wait for workers so.
func (r *unservedRuns) count() int { return int(r.tasks.Load()) }

// servedNow lists the threads for which there is a worker, in the order in which they
// gave their places up.
func (r *unservedRuns) servedNow(now time.Duration, served func(*unserved) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var threads []string
	for thread, u := range r.threads {
		if (u.vain < manyVain || now >= u.until) && served(u) {
			threads = append(threads, thread)
		}
	}
	slices.SortFunc(threads, func(a, b string) int { return cmp.Compare(r.threads[a].order, r.threads[b].order) })
	return threads
}

// prune forgets, once a minute, what no sweep has looked at for long: other servers
// attend to it, or it is gone.
func (r *unservedRuns) prune(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now-r.pruned < forgetAfter {
		return
	}
	r.pruned = now
	for thread, u := range r.threads {
		if now > u.until+longestAbsence+forgetAfter {
			r.forget(thread)
		}
	}
}

// mustStay reports whether a run that ends before a task of the loop has begun loses
// something: values that are not stored, the time that the task has left, or what a
// graph that keeps no checkpoints has done.
func (l *loop) mustStay(n *graph.Node) bool {
	timed := n != nil && (n.Timeout > 0 || n.IdleTimeout > 0) || l.graph().Spec.StepTimeout > 0
	return timed || l.level.attached || l.level.journey != nil || !l.level.stored || l.graph().HasUntracked()
}

// offerPlace gives the run's place up if places are short and the run has nothing to
// do here but wait for workers. errands.mu is held.
func (s *session) offerPlace() {
	x := &s.errands
	needs := make([]checkpoint.Served, 0, len(x.remote))
	for er := range x.remote {
		if er.stays || !er.stranded.Load() {
			return
		}
		needs = append(needs, er.needs[len(er.needs)-1])
	}
	if s.engine.takePlace(s) {
		x.unserved = &unserved{needs: needs, vain: int(x.vain.Load()) + 1}
		s.stop(errUnserved)
	}
}

// takePlace decides that a run gives its place up, or notes that it could.
func (e *Engine) takePlace(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.drained || !s.placed || s.gives:
		return false
	case e.live-e.giving <= e.plenty:
		e.idle[s] = struct{}{}
		return false
	}
	delete(e.idle, s)
	s.gives = true
	e.giving++
	return true
}

// askForPlaces asks runs that could give their places up to do so, where places are
// short. The caller holds mu.
func (e *Engine) askForPlaces() {
	short := e.live - e.giving - e.plenty
	for s := range e.idle {
		if short <= 0 || e.drained {
			return
		}
		short--
		delete(e.idle, s)
		go contain.Func(s.consider, contain.Log(s.log, "asking a run for its place panicked"))()
	}
}

// givesUp is what is known of the run if it gives its place up, else nil.
func (s *session) givesUp() *unserved {
	s.errands.mu.Lock()
	defer s.errands.mu.Unlock()
	return s.errands.unserved
}

// parkUnserved makes a run that gives its place up due after its pause, or earlier
// where a question expires or its time is over.
func (l *loop) parkUnserved(t *tx) {
	u := l.session.givesUp()
	if u == nil || t.Head.Cancel != nil {
		return
	}
	appointed := t.Head.Due
	t.Head.Due = t.now.Add(u.pause())
	if t.Head.Open > 0 {
		t.due(appointed)
	}
	t.due(l.run.Deadline)
}

// standBack has a run that has given its place up wait for workers when it is let
// go of.
func (s *session) standBack(l *loop, v *verdict, head *checkpoint.Head) {
	u := s.givesUp()
	if u == nil || !v.settled || v.state != checkpoint.RunRunning || head.Cancel != nil || head.Owner != "" || head.Wish != "" {
		return
	}
	u.deadline, u.revision = l.run.Deadline, head.Revision
	s.errands.mu.Lock()
	u.told = s.errands.told
	s.errands.mu.Unlock()
	s.waits = u
	s.log.Info("run gives its place up until a worker comes")
}

// endGiving ends what takePlace began, when the session is over. The caller holds mu.
func (e *Engine) endGiving(s *session) {
	delete(e.idle, s)
	if !s.gives {
		return
	}
	e.giving--
	if s.waits != nil {
		e.unserved.add(s.thread, s.waits, e.uptime())
	}
}

// stir has the sweeper look at the runs that wait for workers. It does not block.
func (e *Engine) stir() {
	if !e.unserved.stirred.Swap(true) {
		e.nudge()
	}
}

// servesAny reports whether a worker of this server takes a task of a run.
func (e *Engine) servesAny(u *unserved) bool { return slices.ContainsFunc(u.needs, e.peers.own.Takes) }

// callServed puts the threads whose runs have workers here in line for a place, and
// leaves others to the servers that have workers for them.
func (e *Engine) callServed(ctx context.Context) {
	if e.peers == nil {
		return
	}
	e.unserved.prune(e.uptime())
	if !e.unserved.stirred.Swap(false) {
		return
	}
	known := make(map[checkpoint.Served]bool)
	here := func(need checkpoint.Served) bool {
		takes, ok := known[need]
		if !ok {
			takes = e.peers.own.Takes(need)
			known[need] = takes
		}
		return takes
	}
	for _, thread := range e.unserved.servedNow(e.uptime(), func(u *unserved) bool { return slices.ContainsFunc(u.needs, here) }) {
		e.inLine.join(thread)
	}
	if len(e.peers.post.Others()) == 0 {
		return
	}
	elsewhere := e.unserved.servedNow(e.uptime(), func(u *unserved) bool {
		return !slices.ContainsFunc(u.needs, here) && slices.ContainsFunc(u.needs, func(need checkpoint.Served) bool { return e.peers.Take(need) })
	})
	r := round{engine: e}
	e.tendAll(ctx, elsewhere, &r)
	r.close()
}

// stillUnserved reports whether the run of a thread that no call has changed since
// waits for workers that this server does not have.
func (e *Engine) stillUnserved(head *checkpoint.Head) bool {
	u, known := e.unserved.get(head.Thread)
	late := !u.deadline.IsZero() && !u.deadline.After(head.Now)
	return known && u.revision == head.Revision && !late && !e.servesAny(&u)
}

// putBack leaves such a thread to a server that has workers for it, or alone for a
// longer while. Questions that expire meanwhile are attended to.
func (e *Engine) putBack(ctx context.Context, head checkpoint.Head) error {
	u, _ := e.unserved.get(head.Thread)
	needs := make([][]checkpoint.Served, len(u.needs))
	for i := range needs {
		needs[i] = u.needs[i : i+1]
	}
	if to := e.peers.choose(head.Thread, needs); to != "" {
		return e.point(ctx, head, to)
	}
	u.looks++
	next, err := e.tryChange(ctx, head, func(t *tx) error {
		t.Head.Updated, t.Head.Owner, t.Head.Lent = head.Updated, "", lentBy(&head)
		t.Head.Due = t.now.Add(u.pause())
		t.due(u.deadline)
		if head.Open == 0 {
			return nil
		}
		open, err := e.openInterrupts(ctx, t.Thread)
		if err != nil {
			return err
		}
		if late := t.late(open); len(late) > 0 {
			return e.expireThem(ctx, t, late)
		}
		return nil
	})
	if err == nil {
		e.unserved.looked(head.Thread, next.Revision, e.uptime())
	}
	return err
}
