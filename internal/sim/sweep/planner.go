// Package sweep decides which partitions of a store a server looks at for due threads, when,
// and where in their lists. It reads no clock and calls nothing. The simulator in internal/sim
// plays it; servers do not use it yet.
//
// The servers of a store have an order for each partition, by rendezvous hashing over their
// names: the first is its owner. The owner looks every interval, and when a thread becomes
// due. The others look the less often the later they stand, so that every server looks at
// every partition, whatever it believes of the others. Where more is due than the servers
// before it take, a server takes what stands behind that.
package sweep

import (
	"hash/fnv"
	"math"
	"time"
)

// Batch is the number of threads that the looks of a moment return together, and that each
// server before this one is expected to take of a partition.
const Batch = 256

// minLimit is the number of threads that a look returns at least, however many partitions are
// looked at in the same moment.
const minLimit = 8

// Look is a look at one partition.
type Look struct {
	Partition int
	Skip      int // due threads that are left to the servers before this one
	Limit     int // threads that the look returns at most
}

// Found is what a look found.
type Found struct {
	Partition int
	Skip      int           // of the look
	Due       int           // threads that are due, those that were skipped included
	Taken     int           // threads that the look returned
	Late      time.Duration // how long ago the first of all became due
	Next      time.Duration // until the next thread becomes due, 0 = none is known
	Failed    bool          // the partition did not answer
}

// Planner plans the looks of one server. It is not safe for concurrent use.
type Planner struct {
	self     string
	interval time.Duration
	others   map[string]uint64 // hash by name
	parts    []partition
	awaits   bool // the other servers are not known yet
	until    time.Duration
}

// partition is what a server knows of a partition.
type partition struct {
	score uint64 // of this server
	rank  int    // servers before this one

	next      time.Duration // the time of the next look
	skipsNot  bool          // the next look takes the first threads: those before it leave them
	hasFailed bool          // the last look had no answer
}

// NewPlanner makes the planner of a server that knows no other yet. All partitions are due
// for a look.
func NewPlanner(self string, partitions int, interval time.Duration) *Planner {
	p := &Planner{self: self, interval: interval, others: make(map[string]uint64), parts: make([]partition, partitions)}
	own := hashServer(self)
	for i := range p.parts {
		p.parts[i].score = scoreOf(own, i)
	}
	return p
}

// AwaitOthers puts the first looks off until SetOthers is called, or an interval at most: a server
// that has just begun would take what others are at.
func (p *Planner) AwaitOthers(now time.Duration) {
	p.awaits, p.until = true, now+p.interval
	for i := range p.parts {
		p.parts[i].next = p.until
	}
}

// hashServer hashes the name of a server.
func hashServer(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}

// scoreOf returns the score of a server for a partition. The server with the highest owns it.
func scoreOf(server uint64, partition int) uint64 {
	x := server ^ (uint64(partition)+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// SetOthers sets the names of the other servers, and plans anew the looks at partitions whose
// place of this server has changed.
func (p *Planner) SetOthers(names []string, now time.Duration) {
	known := make(map[string]struct{}, len(names))
	for _, name := range names {
		known[name] = struct{}{}
		p.AddOther(name, now)
	}
	for name := range p.others {
		if _, ok := known[name]; !ok {
			p.RemoveOther(name, now)
		}
	}
	if p.awaits {
		p.awaits = false
		p.LookNow(now)
	}
}

// AddOther adds another server.
func (p *Planner) AddOther(name string, now time.Duration) {
	if _, ok := p.others[name]; ok || name == p.self {
		return
	}
	server := hashServer(name)
	p.others[name] = server
	p.moveRanks(server, 1, now)
}

// RemoveOther removes another server.
func (p *Planner) RemoveOther(name string, now time.Duration) {
	server, ok := p.others[name]
	if !ok {
		return
	}
	delete(p.others, name)
	p.moveRanks(server, -1, now)
}

// moveRanks changes the rank of this server in the partitions in which another stands before it.
func (p *Planner) moveRanks(server uint64, by int, now time.Duration) {
	for i := range p.parts {
		part := &p.parts[i]
		if scoreOf(server, i) <= part.score {
			continue
		}
		part.rank += by
		if by < 0 && part.rank == 0 {
			part.next = now // the owner is gone: what is due?
		} else {
			part.next = min(part.next, now+p.pauseOf(part))
		}
	}
}

// pauseOf returns the time between two looks at a partition in which nothing is due.
func (p *Planner) pauseOf(part *partition) time.Duration {
	return time.Duration(part.rank+1) * p.interval
}

// Rank returns how many servers stand before this one for a partition. They are many as long as the
// others are not known.
func (p *Planner) Rank(partition int) int {
	if p.awaits {
		return math.MaxInt
	}
	return p.parts[partition].rank
}

// Owned returns the number of partitions whose owner this server is.
func (p *Planner) Owned() (n int) {
	for i := range p.parts {
		if p.parts[i].rank == 0 {
			n++
		}
	}
	return n
}

// LookNow makes the partitions of which this server is the owner due for a look.
func (p *Planner) LookNow(now time.Duration) {
	if p.awaits {
		return
	}
	for i := range p.parts {
		if part := &p.parts[i]; part.rank == 0 && !part.hasFailed {
			part.next = min(part.next, now)
		}
	}
}

// Next returns when the next look is due.
func (p *Planner) Next() time.Duration {
	next := p.parts[0].next
	for i := range p.parts {
		next = min(next, p.parts[i].next)
	}
	return next
}

// TakeLooks returns the looks that are due. isFull says that this server can begin no run: then
// it looks only where it is the owner.
func (p *Planner) TakeLooks(now time.Duration, isFull bool) (looks []Look) {
	p.awaits = p.awaits && now < p.until
	for i := range p.parts {
		part := &p.parts[i]
		if part.next > now {
			continue
		}
		part.next = now + p.pauseOf(part)
		if isFull && part.rank > 0 {
			continue
		}
		look := Look{Partition: i}
		if !part.skipsNot {
			look.Skip = part.rank * Batch
		}
		looks = append(looks, look)
	}
	for i := range looks {
		looks[i].Limit = max(minLimit, Batch/len(looks))
	}
	return looks
}

// NoteFound plans the next look at a partition after one.
func (p *Planner) NoteFound(f Found, now time.Duration) {
	part := &p.parts[f.Partition]
	part.skipsNot = false
	switch {
	case f.Failed:
		part.hasFailed = true
		part.next = now + p.pauseOf(part)
		return
	case f.Taken > 0 && f.Due > f.Skip+f.Taken:
		part.next = now // there is more
	case part.rank == 0 && f.Next > 0:
		part.next = now + min(p.interval, f.Next)
	case part.rank > 0 && f.Taken > 0:
		part.next = now + p.interval // there may be more by then
	case part.rank > 0 && f.Skip > 0 && f.Due > 0 && f.Late > time.Duration(part.rank)*p.interval:
		part.skipsNot = true // those before this server leave them
		part.next = now
	default:
		part.next = now + p.pauseOf(part)
	}
	part.hasFailed = false
}

// HasFailed reports whether the last look at a partition had no answer. The next is made apart from
// those at others, which it would delay.
func (p *Planner) HasFailed(partition int) bool { return p.parts[partition].hasFailed }

// NoteAnswer plans a look at a partition that answers again.
func (p *Planner) NoteAnswer(partition int, now time.Duration) {
	p.parts[partition].hasFailed, p.parts[partition].next = false, now
}
