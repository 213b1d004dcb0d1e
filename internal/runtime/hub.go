package runtime

import (
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// hub hands events from the one who committed them to those who follow the
// thread in this process. The store's log is the truth; the hub only saves a
// follower from reading it.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic
}

func newHub() *hub { return &hub{topics: make(map[string]*topic)} }

// topic is a thread that somebody here drives or follows.
type topic struct {
	thread string
	refs   int // guarded by hub.mu

	mu        sync.Mutex
	ring      []checkpoint.Event // the newest events, durable and ephemeral
	first     uint64             // position of ring[0]
	floor     uint64             // durable events up to this number are not in the ring
	last      uint64             // newest durable event that was published
	followers map[*Follower]struct{}
	values    int // followers that want values events filled in
}

// ringSize bounds what a topic keeps; a follower that is further behind reads
// the store.
const ringSize = 512

// join returns the topic of a thread and holds on to it until leave.
func (h *hub) join(thread string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[thread]
	if t == nil {
		t = &topic{thread: thread}
		h.topics[thread] = t
	}
	t.refs++
	return t
}

func (h *hub) leave(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.refs--
	if t.refs == 0 {
		delete(h.topics, t.thread)
	}
}

// find returns the topic of a thread if there is one; the caller must not
// keep it.
func (h *hub) find(thread string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[thread]
}

// publish hands on events that are durable, or that never will be. Durable
// ones that do not continue what was published before empty the ring, and
// followers find the missing ones in the store.
func (t *topic) publish(events []checkpoint.Event) {
	if len(events) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range events {
		t.push(&events[i])
	}
	if over := len(t.ring) - ringSize; over > 0 {
		t.drop(over)
	}
	for f := range t.followers {
		f.signal()
	}
}

func (t *topic) push(e *checkpoint.Event) {
	if !e.Ephemeral {
		if e.Seq <= t.last {
			return
		}
		if e.Seq != t.last+1 {
			t.drop(len(t.ring))
			t.floor = e.Seq - 1
		}
		t.last = e.Seq
	}
	t.ring = append(t.ring, *e)
}

// drop forgets the oldest n entries. The slice is replaced, never shifted in
// place: followers read what they were handed.
func (t *topic) drop(n int) {
	for i := range n {
		if !t.ring[i].Ephemeral {
			t.floor = t.ring[i].Seq
		}
	}
	t.first += uint64(n)
	t.ring = append(make([]checkpoint.Event, 0, len(t.ring)-n+64), t.ring[n:]...)
}

func (t *topic) subscribe(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers == nil {
		t.followers = make(map[*Follower]struct{})
	}
	t.followers[f] = struct{}{}
	if f.values {
		t.values++
	}
}

func (t *topic) unsubscribe(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.followers, f)
	if f.values {
		t.values--
	}
}

// wantsValues reports whether a follower wants the state with values events.
func (t *topic) wantsValues() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values > 0
}

// watched reports whether anybody follows.
func (t *topic) watched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.followers) > 0
}

// whisper hands on one ephemeral event, if anybody listens.
func (t *topic) whisper(e checkpoint.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.followers) == 0 {
		return
	}
	e.Seq = t.last
	t.ring = append(t.ring, e)
	if over := len(t.ring) - ringSize; over > 0 {
		t.drop(over)
	}
	for f := range t.followers {
		f.signal()
	}
}
