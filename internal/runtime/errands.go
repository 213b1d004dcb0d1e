package runtime

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
)

// errMove stops a run that goes on where its workers are.
var errMove = &handOverError{why: "the run goes on at a server that has its workers", moved: true}

// errands are what a live run has under way. When nothing of it can go on here
// and another server has workers for some of it, the run moves there.
type errands struct {
	mu     sync.Mutex
	busy   int // what is under way: the run itself, or in its place its tasks
	remote map[*errand]struct{}
	to     string // where the run moves, "" = nowhere
	leaves bool   // it moves, wherever, because this server stops
	calm   *time.Timer
	born   time.Duration // Engine.uptime when the run was taken up
	moves  atomic.Int64  // how often it had moved then, until it comes further

	unserved *unserved         // why it gives its place up, nil = it does not
	vain     atomic.Int32      // how often in a row it had a place and came no further
	known    map[string]string // by task: what readers were told in an earlier turn
	told     map[string]string // and what they know now
}

// errand is work for a worker.
type errand struct {
	needs    []checkpoint.Served // the server must have workers for all of it; the last one is its own
	stays    bool                // it must not be given up to begin later
	stranded atomic.Bool         // no worker of this server takes it
	keeping  Keeping
}

// errand follows a task that a worker is asked for, until done is called.
func (l *loop) errand(t *Task) (done func()) {
	if l.session.engine.peers == nil {
		return func() {}
	}
	need, _ := needOf(t.Graph, t.Node)
	t.With = l.level.together
	t.Stranded, t.Keeping, done = l.session.track(append(slices.Clip(t.With), need), l.mustStay(t.Node))
	return done
}

// track follows an errand until done is called.
func (s *session) track(needs []checkpoint.Served, stays bool) (stranded *atomic.Bool, keeping *Keeping, done func()) {
	x := &s.errands
	er := &errand{needs: needs, stays: stays}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.remote == nil {
		x.remote = make(map[*errand]struct{}, 1)
	}
	x.remote[er] = struct{}{}
	return &er.stranded, &er.keeping, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.remote, er)
	}
}

// employ notes that n things more are under way, or less.
func (s *session) employ(n int) {
	if s.engine.peers == nil || n == 0 {
		return
	}
	s.errands.mu.Lock()
	s.errands.busy += n
	s.errands.mu.Unlock()
	if n < 0 {
		s.consider()
	}
}

// leave moves the run when nothing goes on here any more, because this server
// stops.
func (s *session) leave() {
	if s.engine.peers == nil { // what goes on is not known
		s.stop(errDrain)
		return
	}
	s.errands.mu.Lock()
	s.errands.leaves = true
	s.errands.mu.Unlock()
	s.consider()
}

// consider moves the run when nothing goes on here any more and another server
// has workers for it.
func (s *session) consider() {
	e, x := s.engine, &s.errands
	if e.peers == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	to, idle := x.next(e.peers, s.thread)
	if x.to != "" || x.unserved != nil || idle == 0 || idle < x.busy {
		return
	}
	if x.leaves {
		x.to = to
		s.stop(errDrain)
		return
	}
	if e.isDraining() {
		return
	}
	if to == "" {
		s.offerPlace()
		return
	}
	if wait := x.born + calmly(int(x.moves.Load()), e.opts.Lease) - e.uptime(); wait > 0 {
		if x.calm == nil {
			x.calm = time.AfterFunc(wait, contain.Func(s.consider, contain.Log(e.log, "a timer panicked")))
		} else {
			x.calm.Reset(wait)
		}
		return
	}
	x.to = to
	s.stop(errMove)
}

// next says how many errands don't go on here, and where the run had better be:
// where the worker of one of them is attached, or where most of them have workers.
// mu is held.
func (x *errands) next(p *peers, thread string) (to string, idle int) {
	var needs [][]checkpoint.Served
	for er := range x.remote {
		switch {
		case er.stranded.Load():
			needs = append(needs, er.needs)
		case er.keeping.Withheld.Load():
		default:
			continue
		}
		idle++
		if holder := er.keeping.Holder.Load(); holder != nil && er.keeping.Withheld.Load() {
			to = *holder
		}
	}
	if to == "" && len(needs) > 0 {
		to = p.choose(thread, needs)
	}
	return to, idle
}

// moving says where the run goes on, "" = nobody knows.
func (s *session) moving() string {
	s.errands.mu.Lock()
	defer s.errands.mu.Unlock()
	return s.errands.to
}

// settleDown ends what follows the run here.
func (s *session) settleDown() {
	s.errands.mu.Lock()
	defer s.errands.mu.Unlock()
	if s.errands.calm != nil {
		s.errands.calm.Stop()
	}
}

// arrived begins to follow what the run has under way.
func (s *session) arrived(moves int) {
	s.errands.busy, s.errands.born = 1, s.engine.uptime()
	s.errands.moves.Store(int64(moves))
	if u := s.engine.unserved.remove(s.thread); u != nil {
		s.errands.known = u.told
		s.errands.vain.Store(int32(u.vain))
	}
}

// further notes in a change that the run has come further since it moved.
func (s *session) further(t *tx) {
	if len(t.Tasks)+len(t.Checkpoints) > 0 {
		t.Head.Moves = 0
		t.recovered()
		s.errands.moves.Store(0)
		s.errands.vain.Store(0)
	}
}

// knows reports whether readers were told in an earlier turn of the run why a task
// waits.
func (x *errands) knows(task, why string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.known[task] == why
	delete(x.known, task)
	if known {
		x.noteTold(task, why)
	}
	return known
}

// haveTold notes that readers were told why a task waits.
func (x *errands) haveTold(task, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.noteTold(task, why)
}

func (x *errands) noteTold(task, why string) {
	if x.told == nil {
		x.told = make(map[string]string, 1)
	}
	x.told[task] = why
}
