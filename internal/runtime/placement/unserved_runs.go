package placement

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A run whose tasks all wait for workers that no server has needs no driver. When slots
// are short it releases its slot: it stops here as in a drain, and its thread is due
// after a pause. When a worker for it registers here, its thread is queued. When
// another server has a worker, that server continues the run. The pauses cover changes
// that this server does not learn of.

// Pauses of a thread whose run waits for workers.
const (
	minUnservedPause = time.Second
	maxUnservedPause = time.Minute
	forgetAfter      = time.Minute // beyond the pause
)

// maxFruitlessTurns is the number of turns without progress from which a change of
// workers does not queue a run any more, because the new workers may not fit. The run
// continues after its pause.
const maxFruitlessTurns = 3

// maxUnservedRuns is the number of such runs that a process remembers. Only the store
// knows the others.
const maxUnservedRuns = 1 << 16

// UnservedRun is a run that gave its slot up.
type UnservedRun struct {
	Needs          []checkpoint.Capability // of its tasks
	LoggedReasons  map[string]string       // by task: the reason for its wait that the log has
	FruitlessTurns int                     // how often in a row it had a slot and made no progress
	Deadline       time.Time               // of the run; zero = none
	Revision       uint64                  // of the head, until a call changes the thread

	checkCount int // number of checks since
	order      uint64
	recheckAt  time.Duration // latest time of the next check; uptime of the engine
}

// PauseTime returns the pause of the run if no worker registers.
func (u *UnservedRun) PauseTime() time.Duration { return u.pauseAfter(0) }

// NextPauseTime returns the pause of the run after a further check.
func (u *UnservedRun) NextPauseTime() time.Duration { return u.pauseAfter(1) }

func (u *UnservedRun) pauseAfter(checks int) time.Duration {
	return backoff.Policy{First: minUnservedPause, Max: maxUnservedPause}.Delay(u.FruitlessTurns + u.checkCount + checks)
}

// UnservedRuns are the runs that released their slots, by thread. During a call
// of another package its lock is free, except for a predicate.
type UnservedRuns struct {
	wake          func()
	isCheckNeeded atomic.Bool  // workers have changed since the last check
	taskCount     atomic.Int64 // that wait so

	mu       sync.Mutex
	threads  map[string]*UnservedRun
	order    uint64
	prunedAt time.Duration
}

// NewUnservedRuns makes an empty set. wake starts a check; it must not block.
func NewUnservedRuns(wake func()) *UnservedRuns { return &UnservedRuns{wake: wake} }

// RequestCheck starts a check of the runs. It does not block.
func (r *UnservedRuns) RequestCheck() {
	if !r.isCheckNeeded.Swap(true) {
		r.wake()
	}
}

// AddRun keeps a run.
func (r *UnservedRuns) AddRun(thread string, u *UnservedRun, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.threads) >= maxUnservedRuns {
		return
	}
	if r.threads == nil {
		r.threads = make(map[string]*UnservedRun)
	}
	r.order++
	u.order, u.recheckAt = r.order, now+u.PauseTime()
	r.threads[thread] = u
	r.taskCount.Add(int64(len(u.Needs)))
}

// FindRun returns a copy of the unserved run of a thread, and false when there is none.
func (r *UnservedRuns) FindRun(thread string) (u UnservedRun, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.threads[thread]; x != nil {
		return *x, true
	}
	return UnservedRun{}, false
}

// RemoveRun removes the run of a thread and returns it, or nil.
func (r *UnservedRuns) RemoveRun(thread string) *UnservedRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.threads[thread]
	r.removeLocked(thread)
	return u
}

// removeLocked removes the run of a thread, if any. The caller holds mu.
func (r *UnservedRuns) removeLocked(thread string) {
	if u := r.threads[thread]; u != nil {
		r.taskCount.Add(-int64(len(u.Needs)))
		delete(r.threads, thread)
	}
}

// NoteCheck records that a thread was checked at a revision and waits again.
func (r *UnservedRuns) NoteCheck(thread string, revision uint64, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.threads[thread]; u != nil {
		u.checkCount++
		u.Revision, u.recheckAt = revision, now+u.PauseTime()
	}
}

// CountTasks returns the number of tasks of these runs.
func (r *UnservedRuns) CountTasks() int { return int(r.taskCount.Load()) }

// listServed lists the threads for which there is a worker, in the order in which
// they released their slots.
func (r *UnservedRuns) listServed(now time.Duration, served func(*UnservedRun) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var threads []string
	for thread, u := range r.threads {
		if (u.FruitlessTurns < maxFruitlessTurns || now >= u.recheckAt) && served(u) {
			threads = append(threads, thread)
		}
	}
	slices.SortFunc(threads, func(a, b string) int { return cmp.Compare(r.threads[a].order, r.threads[b].order) })
	return threads
}

// pruneStale removes, once a minute, the runs that no sweep has checked for long. Other
// servers process them, or they no longer exist.
func (r *UnservedRuns) pruneStale(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now-r.prunedAt < forgetAfter {
		return
	}
	r.prunedAt = now
	for thread, u := range r.threads {
		if now > u.recheckAt+maxUnservedPause+forgetAfter {
			r.removeLocked(thread)
		}
	}
}

// CoversAnyHere reports whether a worker of this server takes a task of a run.
func (p *Peers) CoversAnyHere(u *UnservedRun) bool { return slices.ContainsFunc(u.Needs, p.CoversHere) }

// IsStillUnserved reports whether the run of a thread that no call has changed since
// waits for workers that this server does not have.
func (p *Peers) IsStillUnserved(head *checkpoint.Head) bool {
	u, known := p.unserved.FindRun(head.Thread)
	late := !u.Deadline.IsZero() && !u.Deadline.After(head.Now)
	return known && u.Revision == head.Revision && !late && !p.CoversAnyHere(&u)
}

// ListServed lists the threads whose runs have workers here now, and those whose runs
// have workers only at other servers. It returns nothing until RequestCheck is called
// again.
func (p *Peers) ListServed(now time.Duration) (here, elsewhere []string) {
	p.unserved.pruneStale(now)
	if !p.unserved.isCheckNeeded.Swap(false) {
		return nil, nil
	}
	known := make(map[checkpoint.Capability]bool)
	covers := func(need checkpoint.Capability) bool {
		takes, ok := known[need]
		if !ok {
			takes = p.CoversHere(need)
			known[need] = takes
		}
		return takes
	}
	here = p.unserved.listServed(now, func(u *UnservedRun) bool { return slices.ContainsFunc(u.Needs, covers) })
	if len(p.OtherMembers()) == 0 {
		return here, nil
	}
	elsewhere = p.unserved.listServed(now, func(u *UnservedRun) bool {
		return !slices.ContainsFunc(u.Needs, covers) && slices.ContainsFunc(u.Needs, func(need checkpoint.Capability) bool { return p.Cover(need) })
	})
	return here, elsewhere
}
