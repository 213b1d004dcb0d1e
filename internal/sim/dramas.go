package sim

import "time"

// Drama is what happens to an installation.
type Drama struct {
	Name  string
	Title string
	play  func(w *world) (until int64)
}

// Outcome is what came of a drama.
type Outcome struct {
	Drama  string
	Policy Policy
	Size   Size

	Threads       int64         // that became due
	Done          int64         // of these, went on
	Drained       time.Duration // after the first became due; 0 = not by the end
	Extrapolated  time.Duration // when all would go on at the rate that was reached, if Drained is 0
	P50, P99      float64       // seconds until a thread went on
	ApartP99      float64       // of the partitions that are apart
	Wasted        int64         // reads of threads that another server had taken
	Conflicts     int64         // … and changes
	FailedLooks   int64
	BusiestMaster float64 // share of its time that the busiest master worked
	MeanMaster    float64
	BusiestUses   [useCount]float64 // of that
}

// warmUp is when a drama begins.
const warmUp = 5 * second

// Steady is an installation in which nothing happens but that questions expire.
func Steady() Drama {
	return Drama{Name: "steady", Title: "nothing but questions that expire", play: func(w *world) int64 {
		w.addUsual(30 * second)
		return warmUp + 30*second
	}}
}

// MassExpiry has a hundredth of all threads become due in one minute.
func MassExpiry() Drama {
	return Drama{Name: "mass-expiry", Title: "mass expiry: 1 % of all threads in one minute", play: func(w *world) int64 {
		times := make([][]int32, len(w.partitions))
		w.spread(times, int(w.size.Threads/100), 60*second, w.anyPartition)
		w.addExpiries(times)
		return warmUp + 600*second
	}}
}

// RollingRestart restarts all servers, a fiftieth of them at the same time.
func RollingRestart() Drama {
	return Drama{Name: "rolling-restart", Title: "rolling restart of all servers, 2 % at a time", play: func(w *world) int64 {
		w.addUsual(100 * second)
		group := max(1, len(w.servers)/50)
		for i, s := range w.servers {
			at := warmUp + int64(i/group)*2*second
			w.schedule(at, s.stop)
			w.schedule(at+2*second, s.start)
		}
		return warmUp + 110*second
	}}
}

// LostShard has a master answer nothing for 30 s. The leases of the live runs that are there end.
func LostShard() Drama {
	return Drama{Name: "lost-shard", Title: "loss of one master for 30 s", play: func(w *world) int64 {
		w.addUsual(60 * second)
		lost := len(w.masters) / 2
		w.masters[lost].downFrom, w.masters[lost].downTo = warmUp+5*second, warmUp+35*second
		w.isApart = func(p int) bool { return w.partitions[p].master == lost }
		var there []int
		for i := range w.partitions {
			if w.partitions[i].master == lost {
				there = append(there, i)
			}
		}
		w.schedule(warmUp+20*second, func() { // a lease time later
			for range w.size.LiveRuns / len(w.masters) {
				p := &w.partitions[there[w.random.IntN(len(there))]]
				ms := int32(w.now / 1e6)
				p.goOn.addThreads(ms, ms)
				w.expected++
			}
		})
		return warmUp + 120*second
	}}
}

// HotTenant has a tenant make half of what is due, in four partitions.
func HotTenant() Drama {
	return Drama{Name: "hot-tenant", Title: "a tenant makes half of what is due, in four partitions", play: func(w *world) int64 {
		times := make([][]int32, len(w.partitions))
		n := int(w.size.Threads / 1000)
		w.spread(times, n/2, 60*second, w.anyPartition)
		w.spread(times, n/2, 60*second, func() int { return w.random.IntN(4) * len(w.partitions) / 4 })
		w.addExpiries(times)
		w.isApart = func(p int) bool { return p%(len(w.partitions)/4) == 0 }
		return warmUp + 600*second
	}}
}

// Dramas returns the four dramas.
func Dramas() []Drama { return []Drama{MassExpiry(), RollingRestart(), LostShard(), HotTenant()} }

// expiryTime is the time within which the questions of all threads expire.
const expiryTime = 7 * 24 * time.Hour

// addUsual has questions expire that waited for a week.
func (w *world) addUsual(lasts int64) {
	times := make([][]int32, len(w.partitions))
	n := int(float64(w.size.Threads) * float64(lasts) / float64(expiryTime))
	w.spread(times, max(n, 1), lasts, w.anyPartition)
	w.addExpiries(times)
}

// stop drains a server: its runs are left to the others.
func (s *server) stop() {
	w := s.world
	s.isUp = false
	s.sequence++
	woken := map[*server]bool{}
	for range w.size.LiveRuns / len(w.servers) {
		i := w.anyPartition()
		p := &w.partitions[i]
		at, ok := w.serve(i, w.costs.Change, useWork)
		if !ok {
			continue
		}
		w.expected++
		ms := int32(at / 1e6)
		p.goOn.addThreads(ms, ms)
		r := ref{partition: int32(i), index: int32(len(p.goOn.due) - 1), goesOn: true}
		for _, other := range w.servers {
			if !other.isUp {
				continue
			}
			if w.policy == Owners {
				if other.planner.Rank(i) >= wakeRanks {
					continue
				}
				other.own = append(other.own, r)
			}
			woken[other] = true
		}
	}
	w.changeRoster(rosterChange{server: s.name, isGone: true})
	for _, other := range w.servers { // in order
		if woken[other] {
			w.schedule(w.now+int64(w.costs.RoundTrip), other.wake)
		}
	}
}

// start starts it again, and its workers come back.
func (s *server) start() {
	w := s.world
	s.isUp = true
	s.name += "'"
	s.beginServer(false)
	s.version = 0
	w.changeRoster(rosterChange{server: s.name})
	if w.policy == All {
		s.lookForDue()
	} else {
		s.planner.AwaitOthers(s.uptime())
	}
	at := w.masters[0].serve(w.now, int64(w.costs.RosterAll+time.Duration(len(w.servers))*w.costs.RosterMember), useRoster)
	s.version = len(w.roster)
	s.callAt(at, func() { // its first exchange returns all
		var others []string
		for _, other := range w.servers {
			if other != s && other.isUp {
				others = append(others, other.name)
			}
		}
		if w.policy == Owners {
			s.planner.SetOthers(others, s.uptime())
			s.wake()
		}
		s.renewEntry()
	})
	s.callAt(w.now+int64(500*time.Millisecond), func() { w.changeRoster(rosterChange{server: s.name, isOnly: true}) })
}

// Play plays a drama. Without end of the threads it ends after its time, or after most.
func Play(d Drama, size Size, policy Policy, seed uint64, most time.Duration) Outcome {
	w := newWorld(size, policy, seed)
	until := d.play(w)
	if most > 0 {
		until = min(until, warmUp+int64(most))
	}
	isOver := func() bool { return false }
	if d.Name == "mass-expiry" || d.Name == "hot-tenant" {
		isOver = w.isDrained
	}
	w.runUntil(until, isOver)
	return w.describeOutcome(d, policy)
}

// describeOutcome says what came of a drama.
func (w *world) describeOutcome(d Drama, policy Policy) Outcome {
	o := Outcome{
		Drama: d.Name, Policy: policy, Size: w.size, Threads: w.expected, Done: w.done, P50: w.late.findQuantile(0.5), P99: w.late.findQuantile(0.99),
		ApartP99: w.lateApart.findQuantile(0.99), Wasted: w.wasted, Conflicts: w.conflicts, FailedLooks: w.failedLooks,
	}
	passed := time.Duration(w.now - warmUp)
	if w.isDrained() {
		o.Drained = passed
	} else if w.done > 0 {
		o.Extrapolated = time.Duration(float64(passed) * float64(w.expected) / float64(w.done))
	}
	from, to := warmUp, max(w.now/second*second, warmUp+second)
	for i := range w.masters {
		m := &w.masters[i]
		busy := m.busyShare(from, to)
		o.MeanMaster += busy / float64(len(w.masters))
		if busy <= o.BusiestMaster {
			continue
		}
		o.BusiestMaster = busy
		for u, spent := range m.spent {
			o.BusiestUses[u] = float64(spent) / float64(w.now)
		}
	}
	return o
}
