package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Policy is how servers find due threads, and how they know each other.
type Policy int

// Policies.
const (
	// All is how it was: each server looks at all partitions, for the threads of all, and reads
	// the whole roster.
	All Policy = iota
	// Owners is how it is: servers look at their partitions first, and read what has changed in
	// the roster.
	Owners
)

// Size is what a store and its servers have.
type Size struct {
	Threads    int64 // that are parked
	LiveRuns   int
	Servers    int
	Masters    int
	Partitions int
}

// mastersMemory is what a master may hold: 60 % of a machine with 64 GiB.
const mastersMemory = 64 << 30 * 6 / 10

// SizeOf returns the size of an installation with so many servers: 1,000,000 threads and 1,000
// live runs for each, as many masters as the threads need memory, and two partitions a master, 16
// at least.
func SizeOf(servers int) Size {
	s := Size{Threads: int64(servers) * 1_000_000, LiveRuns: servers * 1000, Servers: servers}
	bytes := s.Threads * MeasuredCosts().ThreadBytes
	s.Masters = int((bytes + mastersMemory - 1) / mastersMemory)
	s.Partitions = 16
	for s.Partitions < 2*s.Masters {
		s.Partitions *= 2
	}
	s.Partitions = min(s.Partitions, 1024)
	return s
}

// world is an installation.
type world struct {
	clock

	costs      Costs
	size       Size
	policy     Policy
	random     *rand.Rand
	masters    []master
	partitions []partition
	servers    []*server

	late, lateApart lateness // of all threads, and of those in partitions that are apart
	isApart         func(partition int) bool
	done            int64 // threads that went on
	expected        int64 // threads that are to go on
	wasted          int64 // threads that a server read although another was faster
	conflicts       int64 // … or tried to change
	failedLooks     int64

	roster []rosterChange
}

// interval is how often a server looks at a partition.
const interval = time.Second

// newWorld makes an installation whose servers have all begun.
func newWorld(size Size, policy Policy, seed uint64) *world {
	w := &world{
		costs: MeasuredCosts(), size: size, policy: policy, random: rand.New(rand.NewPCG(seed, 1)),
		masters: make([]master, size.Masters), partitions: make([]partition, size.Partitions),
		isApart: func(int) bool { return false },
	}
	for i := range w.partitions {
		w.partitions[i].master = i * size.Masters / size.Partitions
	}
	for i := range size.Servers {
		w.servers = append(w.servers, &server{world: w, id: i, name: fmt.Sprint("server-", i), isUp: true})
	}
	for _, s := range w.servers {
		s.beginServer(true)
		w.schedule(w.random.Int64N(int64(interval)), s.lookForDue)
		w.schedule(w.random.Int64N(int64(heartbeat)), s.renewEntry)
	}
	w.renewLeases()
	return w
}

// leaseTick is how often the renewals of leases are counted.
const leaseTick = 100 * time.Millisecond

// renewEvery is how often a live run renews its lease.
const renewEvery = 5 * time.Second

// renewLeases has the live runs renew their leases.
func (w *world) renewLeases() {
	each := float64(w.size.LiveRuns) / float64(len(w.masters)) * float64(leaseTick) / float64(renewEvery) * float64(w.costs.Change)
	for i := range w.masters {
		if m := &w.masters[i]; !m.isDown(w.now) {
			m.serve(w.now, int64(each), useLeases)
		}
	}
	w.schedule(w.now+int64(leaseTick), w.renewLeases)
}

// addExpiries has threads become due at some times: in milliseconds, by partition.
func (w *world) addExpiries(times [][]int32) {
	for i, list := range times {
		slices.Sort(list)
		for _, at := range list {
			w.partitions[i].expires.addThreads(at, at)
		}
		w.expected += int64(len(list))
	}
}

// spread draws n times within a while from the beginning of a drama, over partitions by weight.
func (w *world) spread(times [][]int32, n int, within int64, pick func() int) {
	for range n {
		p := pick()
		times[p] = append(times[p], int32((warmUp+w.random.Int64N(within))/1e6))
	}
}

// anyPartition draws a partition.
func (w *world) anyPartition() int { return w.random.IntN(len(w.partitions)) }

// isDrained reports whether all threads went on.
func (w *world) isDrained() bool { return w.done >= w.expected }

// serve has the master of a partition take a call that is sent now, and returns when its answer
// is there. ok is false when there is none.
func (w *world) serve(partition int, cost time.Duration, u use) (at int64, ok bool) {
	m := &w.masters[w.partitions[partition].master]
	if m.isDown(w.now) {
		return w.now + int64(w.costs.NoAnswer), false
	}
	return m.serve(w.now+int64(w.costs.RoundTrip)/2, int64(cost), u) + int64(w.costs.RoundTrip)/2, true
}
