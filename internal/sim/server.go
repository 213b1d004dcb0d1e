package sim

import (
	"time"

	"github.com/graphd-dev/graphd/internal/sim/sweep"
)

// parallel is how many due threads a server processes at the same time.
const parallel = 16

// wakeRanks is how many servers of a partition look at a thread that another server leaves.
const wakeRanks = 2

// server is a server. It does one look with its threads at a time.
type server struct {
	world   *world
	id      int
	name    string
	isUp    bool
	planner *sweep.Planner

	isBusy   bool // a look, or threads of one, are under way
	isWoken  bool // meanwhile there is reason for another
	timer    int64
	freeAt   int64 // when its processor has done all that it has
	own      []ref // threads that it knows to be due without a look
	syncAt   int64 // when it reads the roster next
	version  int   // how much of the roster it has read
	renewed  int64 // when its entry was written
	sequence int   // of its lives
}

// beginServer begins a life of the server. knows says that it knows all others.
func (s *server) beginServer(knows bool) {
	w := s.world
	s.own, s.isBusy, s.isWoken, s.timer = nil, false, false, 0
	s.planner = sweep.NewPlanner(s.name, w.size.Partitions, interval)
	if !knows || w.policy == All {
		return
	}
	for _, other := range w.servers {
		if other != s && other.isUp {
			s.planner.AddOther(other.name, s.uptime())
		}
	}
}

func (s *server) uptime() time.Duration { return time.Duration(s.world.now) }

// wake has the server look now.
func (s *server) wake() {
	if !s.isUp {
		return
	}
	s.planner.LookNow(s.uptime())
	if s.isBusy {
		s.isWoken = true
		return
	}
	s.lookForDue()
}

// lookAt has the server look at a time, unless it looks before.
func (s *server) lookAt(at int64) {
	at = max(at, s.world.now+int64(time.Millisecond))
	if s.timer > s.world.now && s.timer <= at {
		return
	}
	s.timer = at
	life := s.sequence
	s.world.schedule(at, func() {
		if s.timer == at && s.sequence == life {
			s.timer = 0
			s.lookForDue()
		}
	})
}

// lookForDue looks at the store, and processes what it finds.
func (s *server) lookForDue() {
	if !s.isUp || s.isBusy {
		s.isWoken = s.isBusy
		return
	}
	s.isBusy = true
	if s.world.policy == All {
		s.lookAtAll()
	} else {
		s.lookAtOwn()
	}
}

// lookAtAll asks all partitions for the threads that are due longest of all.
func (s *server) lookAtAll() {
	w := s.world
	answered, ok := w.now, true
	next := int32(-1)
	cursors := make([]cursor, len(w.partitions))
	count := 0
	for i := range w.partitions {
		p := &w.partitions[i]
		p.passDue(w.now)
		cursors[i] = p.walk(int32(i))
		returned := min(p.countDue(), sweep.Batch+1)
		count += returned
		at, there := w.serve(i, w.costs.Look+time.Duration(returned)*w.costs.LookThread, useLooks)
		answered, ok = max(answered, at), ok && there
		if n := p.findNext(); n >= 0 && (next < 0 || n < next) {
			next = n
		}
	}
	if !ok { // one partition that does not answer fails the look
		w.failedLooks++
		s.callAt(answered, func() { s.endLook(w.now + int64(interval)) })
		return
	}
	isMore := count > sweep.Batch
	all := mergeCursors(cursors, sweep.Batch)
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.callAt(answered, func() {
		s.processThreads(all, func() {
			switch {
			case isMore:
				s.endLook(w.now)
			case next >= 0:
				s.endLook(min(w.now+int64(interval), int64(next)*1e6))
			default:
				s.endLook(w.now + int64(interval))
			}
		})
	})
}

// lookAtOwn makes the looks that are planned.
func (s *server) lookAtOwn() {
	w := s.world
	if len(s.own) > 0 {
		own := s.own
		s.own = nil
		s.processThreads(own, func() { s.endLook(w.now) })
		return
	}
	answered := w.now
	var all []ref
	for _, look := range s.planner.TakeLooks(s.uptime(), false) {
		isApart := s.planner.HasFailed(look.Partition)
		p := &w.partitions[look.Partition]
		p.passDue(w.now)
		list, first := p.listDue(int32(look.Partition), look.Skip, look.Limit)
		cost := w.costs.Look + time.Duration(len(list))*w.costs.LookThread + time.Duration(min(look.Skip, p.countDue()))*w.costs.LookSkip
		at, ok := w.serve(look.Partition, cost, useLooks)
		found := sweep.Found{Partition: look.Partition, Skip: look.Skip, Due: p.countDue(), Taken: len(list), Failed: !ok}
		if !ok {
			w.failedLooks++
			if !isApart { // it is made together with the others
				at = w.now + int64(interval)
				answered = max(answered, at)
			}
			s.callAt(at, func() { s.planner.NoteFound(found, s.uptime()) })
			continue
		}
		if first >= 0 {
			found.Late = time.Duration(w.now) - time.Duration(first)*time.Millisecond
		}
		if n := p.findNext(); n >= 0 {
			found.Next = time.Duration(n)*time.Millisecond - time.Duration(w.now)
		}
		s.planner.NoteFound(found, s.uptime())
		answered = max(answered, at)
		all = append(all, list...)
	}
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.callAt(answered, func() {
		s.processThreads(all, func() { s.endLook(int64(s.planner.Next())) })
	})
}

// callAt has something happen in this life of the server.
func (s *server) callAt(at int64, do func()) {
	life := s.sequence
	s.world.schedule(at, func() {
		if s.sequence == life {
			do()
		}
	})
}

// endLook ends a look, and plans the next.
func (s *server) endLook(next int64) {
	s.isBusy = false
	if s.isWoken || len(s.own) > 0 {
		s.isWoken = false
		next = s.world.now
	}
	s.lookAt(next)
}

// processThreads processes threads, some at a time.
func (s *server) processThreads(threads []ref, then func()) {
	if len(threads) == 0 {
		then()
		return
	}
	w := s.world
	now := threads[:min(parallel, len(threads))]
	end := w.now
	var work time.Duration
	for _, r := range now {
		at, took := s.processThread(r)
		end = max(end, at)
		work += took
	}
	s.freeAt = max(s.freeAt, w.now) + int64(work)/2 // two processors
	s.callAt(max(end, s.freeAt), func() { s.processThreads(threads[len(now):], then) })
}

// units is how many nanoseconds a unit of queue.claimed has.
const units = 100_000

// processThread processes one thread. It returns when that is done, and the work of the server.
func (s *server) processThread(r ref) (at int64, work time.Duration) {
	w := s.world
	p := &w.partitions[r.partition]
	q := p.queueOf(r)
	if claimed := q.claimed[r.index]; claimed != 0 {
		w.wasted++
		cost := w.costs.Read
		if int64(claimed)*units > w.now { // it reads the thread before it is changed
			w.conflicts++
			cost += w.costs.Read + w.costs.Change
		}
		at, _ = w.serve(int(r.partition), cost, useMissed)
		return at, w.costs.ServerMiss
	}
	cost := 2*w.costs.Read + w.costs.Change // the head, the question, the expiry
	if r.goesOn {
		cost = 3*w.costs.Read + 3*w.costs.Change // the head, the run, the state; the take-over and two supersteps
	}
	at, ok := w.serve(int(r.partition), cost, useWork)
	if !ok {
		return at, w.costs.ServerMiss
	}
	q.claimed[r.index] = int32(at/units) + 1
	q.passDue(int32(w.now / 1e6))
	q.taken++
	origin := q.origin[r.index]
	if !r.goesOn {
		w.schedule(at, func() { s.endExpiry(int(r.partition), origin) })
		return at, w.costs.ServerWork
	}
	w.done++
	late := float64(at)/1e6 - float64(origin)
	if w.isApart(int(r.partition)) {
		w.lateApart.addSample(late)
	} else {
		w.late.addSample(late)
	}
	return at, w.costs.ServerWork
}

// endExpiry has the run of a thread whose question has expired go on: it is due now, and the
// server that expired it knows.
func (s *server) endExpiry(partition int, origin int32) {
	w := s.world
	p := &w.partitions[partition]
	p.goOn.addThreads(int32(w.now/1e6), origin)
	p.passDue(w.now)
	if w.policy == Owners {
		s.own = append(s.own, ref{partition: int32(partition), index: int32(len(p.goOn.due) - 1), goesOn: true})
	}
	s.wake()
}
