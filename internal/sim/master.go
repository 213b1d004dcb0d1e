package sim

import "time"

// second is a second of virtual time.
const second = int64(time.Second)

// use is what a master is used for.
type use int

// Uses of a master.
const (
	useWork   use = iota // of threads that are due
	useMissed            // of threads that another server was faster with
	useLooks
	useRoster
	useLeases // renewals of live runs
	useCount
)

// master is a server of Redis: one processor that takes calls in their order.
type master struct {
	free     int64 // when it has done all that it has
	spent    [useCount]int64
	seconds  []int64 // nanoseconds of work by second
	downFrom int64
	downTo   int64
}

// isDown reports whether it answers no call at a time.
func (m *master) isDown(at int64) bool { return at >= m.downFrom && at < m.downTo }

// serve takes a call that arrives at a time, and returns when it is done.
func (m *master) serve(at, cost int64, u use) (done int64) {
	m.free = max(m.free, at) + cost
	m.spent[u] += cost
	s := int(m.free / second)
	for len(m.seconds) <= s {
		m.seconds = append(m.seconds, 0)
	}
	m.seconds[s] += cost
	return m.free
}

// busyShare returns the share of some seconds in which the master worked.
func (m *master) busyShare(from, to int64) float64 {
	var sum int64
	for s := from / second; s < to/second && s < int64(len(m.seconds)); s++ {
		sum += m.seconds[s]
	}
	return float64(sum) / float64(max(to-from, 1))
}
