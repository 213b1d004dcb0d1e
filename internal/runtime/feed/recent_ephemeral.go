package feed

import "github.com/graphd-dev/graphd/internal/checkpoint"

// recentEvents are the newest ephemeral events of a thread, for followers that come later. Only
// the process that drives the thread has them, and only as long as it does.
type recentEvents struct {
	events []checkpoint.Event
	bytes  int
}

// Bounds of the recent events: of a thread, and of all threads as a part of what the rings may hold.
const (
	recentBytes   = 256 << 10
	recentDivisor = 4
)

// keepRecent keeps an ephemeral event, and drops the oldest beyond the bounds. The caller holds mu.
func (t *Topic) keepRecent(e checkpoint.Event) {
	size := e.Size()
	if size > recentBytes || t.hub.recentBytes.Load()+int64(size) > t.hub.limit/recentDivisor {
		t.dropRecent(len(t.recent.events)) // what is kept has no holes
		return
	}
	t.recent.events = append(t.recent.events, e)
	t.recent.bytes += size
	t.hub.recentBytes.Add(int64(size))
	n := 0
	for excess := t.recent.bytes - recentBytes; excess > 0; n++ {
		excess -= t.recent.events[n].Size()
	}
	t.dropRecent(n)
}

// dropRecent drops the oldest n of the recent events. The caller holds mu.
func (t *Topic) dropRecent(n int) {
	if n == 0 {
		return
	}
	size := 0
	for i := range n {
		size += t.recent.events[i].Size()
	}
	t.recent.bytes -= size
	t.hub.recentBytes.Add(int64(-size))
	clear(t.recent.events[:n])
	t.recent.events = t.recent.events[n:] // an append that needs room leaves the rest behind
	if len(t.recent.events) == 0 {
		t.recent.events = nil
	}
}

// RecentEphemeral returns the ephemeral events from before the follower came that are kept, in
// their order. Each has the number of the durable event before it.
func (f *Follower) RecentEphemeral() []checkpoint.Event { return f.recent }
