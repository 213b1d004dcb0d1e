package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// hub hands events from the one who committed them to those who follow the
// thread in this process. The store's log is the truth; the hub only saves a
// follower from reading it.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic
	limit  int64        // of bytes
	bytes  atomic.Int64 // that the rings of all topics hold
	large  largeTopics
}

func newHub(limit int) *hub {
	return &hub{topics: make(map[string]*topic), limit: int64(limit), large: largeTopics{least: limit >> 14}}
}

// topic is a thread that somebody here drives or follows.
type topic struct {
	hub    *hub
	thread string
	refs   int // guarded by hub.mu

	mu        sync.Mutex
	ring      [][]checkpoint.Event // the newest batches, shared with whoever committed them
	events    int                  // in the ring
	bytes     int                  // in the ring
	first     uint64               // position of ring[0]
	floor     uint64               // durable events up to this number are not in the ring
	last      uint64               // newest durable event that was published
	mark      uint32               // of that event
	caughtUp  int                  // followers that have passed the whole ring
	followers map[*Follower]struct{}
	values    int    // followers that want values events filled in
	inputs    int    // followers that want scheduled tasks filled in
	over      bool   // the thread was deleted; the last batch says so
	doubts    uint64 // how often the store may have got what was not published
	dropped   uint64 // position of the newest ephemeral event that was dropped, plus 1
	heard     bool   // what others do to the thread is told
	driven    int    // sessions of this process on the thread
	stopped   *Stop  // the last run that stopped here; nil = none that is known
}

// What a topic keeps for followers that have not passed it; a follower that is
// further behind reads the store.
const (
	ringSize  = 512
	ringBytes = 1 << 20
)

// join returns the topic of a thread and holds on to it until leave.
func (h *hub) join(thread string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[thread]
	if t == nil {
		t = &topic{hub: h, thread: thread}
		h.topics[thread] = t
	}
	t.refs++
	return t
}

func (h *hub) leave(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.refs--
	if t.refs > 0 {
		return
	}
	if h.topics[t.thread] == t {
		delete(h.topics, t.thread)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(len(t.ring))
}

// end tells the followers of a thread that it was deleted. A thread that is
// made again under the same name gets a topic of its own.
func (h *hub) end(thread string, now time.Time) {
	h.mu.Lock()
	t := h.topics[thread]
	delete(h.topics, thread)
	h.mu.Unlock()
	if t == nil {
		return
	}
	defer h.relieve()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.push([]checkpoint.Event{{Kind: EventDeleted, Seq: t.last, Ephemeral: true, Time: now}})
}

// find returns the topic of a thread if there is one; the caller must not
// keep it.
func (h *hub) find(thread string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[thread]
}

// doubt makes the followers of a thread read the store: it may hold events that
// nobody published, because nobody knows whether a change was made.
func (h *hub) doubt(thread string) {
	t := h.find(thread)
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doubts++
	for f := range t.followers {
		f.signal()
	}
}

// publish hands on a batch of durable events, in order. A batch that does not
// continue what was published before empties the ring, and followers find the
// missing events in the store. The batch must not be changed any more.
func (t *topic) publish(events []checkpoint.Event) {
	if len(events) == 0 {
		return
	}
	defer t.hub.relieve()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if t.last > 0 && events[0].Seq <= t.last {
		if t.known(events) {
			return
		}
		t.reset()
	}
	newest := &events[len(events)-1]
	if len(t.followers) == 0 { // whoever comes later reads the store
		t.drop(len(t.ring))
		t.last, t.mark = newest.Seq, Mark(newest)
		t.floor = t.last
		return
	}
	if events[0].Seq != t.last+1 {
		t.drop(len(t.ring))
		t.floor = events[0].Seq - 1
	}
	t.last, t.mark = newest.Seq, Mark(newest)
	t.push(events)
}

// push adds a batch and wakes the followers. The caller holds mu.
func (t *topic) push(batch []checkpoint.Event) {
	t.ring = append(t.ring, batch)
	t.events += len(batch)
	t.count(sizeOf(batch))
	n, events, bytes := 0, t.events, t.bytes
	for n < len(t.ring)-1 && (events > ringSize || bytes > ringBytes) {
		events -= len(t.ring[n])
		bytes -= sizeOf(t.ring[n])
		n++
	}
	passed := t.first + uint64(len(t.ring)) - 1
	for f := range t.followers {
		passed = min(passed, f.from)
		f.atEnd = false
		f.signal()
	}
	t.caughtUp = 0
	if passed > t.first {
		n = max(n, int(passed-t.first))
	}
	if n > 0 {
		t.drop(n)
	}
}

// passed notes that a follower has looked for more and found nothing. What all
// have passed is let go of. The caller holds mu.
func (t *topic) passed(f *Follower) {
	if !f.atEnd {
		f.atEnd = true
		t.caughtUp++
	}
	t.letGo()
}

// letGo empties the ring when all followers have passed it. The caller holds mu.
func (t *topic) letGo() {
	if t.caughtUp == len(t.followers) && len(t.ring) > 0 {
		t.drop(len(t.ring))
	}
}

// goBack notes that a follower has given back what it was handed.
func (t *topic) goBack(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.pos = f.from
	if f.atEnd {
		f.atEnd = false
		t.caughtUp--
	}
}

func (t *topic) count(bytes int) {
	before := t.bytes
	t.bytes += bytes
	t.hub.bytes.Add(int64(bytes))
	t.hub.large.move(t, before, t.bytes)
}

// shed drops the oldest half of the ring.
func (t *topic) shed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, left := 0, t.bytes
	for n < len(t.ring) && left > t.bytes/2 {
		left -= sizeOf(t.ring[n])
		n++
	}
	t.drop(n)
}

// drop forgets the oldest n batches.
func (t *topic) drop(n int) {
	for i, batch := range t.ring[:n] {
		t.events -= len(batch)
		t.count(-sizeOf(batch))
		if e := &batch[len(batch)-1]; !e.Ephemeral {
			t.floor = e.Seq
		} else {
			t.dropped = t.first + uint64(i) + 1
		}
		t.ring[i] = nil
	}
	t.first += uint64(n)
	t.ring = t.ring[n:]
}

// drive notes that a session on the thread begins here.
func (t *topic) drive() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.driven++
}

// rest notes that a session on the thread has ended here. Those who follow it
// look where it goes on.
func (t *topic) rest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.driven--
	for f := range t.followers {
		f.signal()
	}
}

func (t *topic) isDriven() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.driven > 0
}

func (t *topic) subscribe(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers == nil {
		t.followers = make(map[*Follower]struct{})
	}
	t.followers[f] = struct{}{}
	f.since = t.first + uint64(len(t.ring))
	f.pos = f.since
	if f.values {
		t.values++
	}
	if f.inputs {
		t.inputs++
	}
}

func (t *topic) unsubscribe(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.followers, f)
	if f.atEnd {
		t.caughtUp--
	}
	t.letGo()
	if f.values {
		t.values--
	}
	if f.inputs {
		t.inputs--
	}
}

// wantsValues reports whether a follower wants the state with values events.
func (t *topic) wantsValues() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values > 0
}

// wantsInputs reports whether a follower wants what scheduled tasks see.
func (t *topic) wantsInputs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inputs > 0
}

// whisper hands on one ephemeral event, if anybody listens, here or, by the
// tuner, elsewhere.
func (t *topic) whisper(e checkpoint.Event, tuner checkpoint.Tuner) {
	defer t.hub.relieve()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	e.Seq = t.last
	if tuner != nil {
		tuner.Tell(t.thread, e)
	}
	if len(t.followers) == 0 {
		return
	}
	t.push([]checkpoint.Event{e})
}
