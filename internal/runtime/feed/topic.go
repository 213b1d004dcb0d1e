package feed

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// eventHub delivers committed events to the followers in this process, so that
// they need not read the log. The log in the store is authoritative.
type eventHub struct {
	mu          sync.Mutex
	topics      map[string]*Topic
	limit       int64        // of bytes
	bytes       atomic.Int64 // that the rings of all topics hold
	largeTopics largeTopics
	recentBytes atomic.Int64 // that the recent events of all topics hold
}

func newEventHub(limit int) *eventHub {
	return &eventHub{topics: make(map[string]*Topic), limit: int64(limit), largeTopics: largeTopics{minBytes: limit >> 14}}
}

// Topic is a thread that is driven or followed here.
type Topic struct {
	hub      *eventHub
	thread   string
	refCount int // guarded by hub.mu

	mu              sync.Mutex
	ring            []batch // the newest
	eventCount      int     // in the ring; joined pieces are one
	bytes           int     // in the ring
	endPos          uint64  // position of the next batch
	storeOnlyUpTo   uint64  // durable events up to this number are not in the ring
	lastSeq         uint64  // newest durable event that was published
	lastMark        uint32  // of that event
	caughtUpCount   int     // followers that have passed the whole ring
	followers       map[*Follower]struct{}
	reads           map[readKey]*sharedRead // of the log, that have not begun
	valuesFollowers int                     // followers that want values events filled in
	inputsFollowers int                     // followers that want scheduled tasks filled in
	stopFollowers   int                     // followers that want the questions and the output of a run that stops
	isDeleted       bool                    // the thread was deleted; the last batch has EventDeleted
	generation      uint64                  // counts the changes that the store may have accepted without a publication
	droppedPos      uint64                  // position of the newest ephemeral event that was dropped, plus 1
	droppedCount    uint64                  // ephemeral events from before the ring, ever
	isConnected     bool                    // this process receives signals of the others
	driverCount     int                     // sessions of this process on the thread
	stoppedRun      *runtime.StoppedRun     // the last run that stopped here; nil = unknown
	recent          recentEvents
}

// Limits of a topic's ring. A follower behind the ring reads the store.
const (
	ringSize  = 512
	ringBytes = 1 << 20
)

// acquireTopic returns the topic of a thread and keeps it until releaseTopic.
func (h *eventHub) acquireTopic(thread string) *Topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[thread]
	if t == nil {
		t = &Topic{hub: h, thread: thread}
		h.topics[thread] = t
	}
	t.refCount++
	return t
}

func (h *eventHub) releaseTopic(t *Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.refCount--
	if t.refCount > 0 {
		return
	}
	if h.topics[t.thread] == t {
		delete(h.topics, t.thread)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropBatches(len(t.ring))
	t.dropRecent(len(t.recent.events))
}

// endTopic reports to the followers of a thread that it was deleted. A new
// thread under the same name gets another topic.
func (h *eventHub) endTopic(thread string, now time.Time) {
	h.mu.Lock()
	t := h.topics[thread]
	delete(h.topics, thread)
	h.mu.Unlock()
	if t == nil {
		return
	}
	defer h.dropExcess()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isDeleted = true
	t.dropRecent(len(t.recent.events))
	t.pushBatch([]checkpoint.Event{{Kind: runtime.EventDeleted, Seq: t.lastSeq, Ephemeral: true, Time: now}})
}

// findTopic returns the topic of a thread, or nil. The caller must not keep it.
func (h *eventHub) findTopic(thread string) *Topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[thread]
}

// invalidateTopic makes the followers read the store: it may hold events that were
// not published, because the outcome of a change is unknown.
func (h *eventHub) invalidateTopic(thread string) {
	t := h.findTopic(thread)
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.generation++
	for f := range t.followers {
		f.wakeReader()
	}
}

// PublishEvents publishes a batch of durable events, in order. A batch that does not
// continue the previous batch empties the ring, and followers read the missing events
// from the store. The caller must not change the batch any more.
func (t *Topic) PublishEvents(events []checkpoint.Event) {
	if len(events) == 0 {
		return
	}
	defer t.hub.dropExcess()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDeleted {
		return
	}
	if t.lastSeq > 0 && events[0].Seq <= t.lastSeq {
		if t.isPublished(events) {
			return
		}
		t.resetPublishedLocked()
	}
	newest := &events[len(events)-1]
	if len(t.followers) == 0 { // later followers read the store
		t.dropBatches(len(t.ring))
		t.lastSeq, t.lastMark = newest.Seq, runtime.EventMark(newest)
		t.storeOnlyUpTo = t.lastSeq
		return
	}
	if events[0].Seq != t.lastSeq+1 {
		t.dropBatches(len(t.ring))
		t.storeOnlyUpTo = events[0].Seq - 1
	}
	t.lastSeq, t.lastMark = newest.Seq, runtime.EventMark(newest)
	t.pushBatch(events)
}

// A follower that waits for the stop of a run is woken when the ring has so many events or bytes.
const (
	waitingEvents = 64
	waitingBytes  = 16 << 10
)

// mayEndWait reports whether an event is of use to who waits for the stop of a run: it is a stop, or
// says that none may come.
func mayEndWait(e checkpoint.Event) bool {
	return e.Kind == checkpoint.EventRunState || e.Kind == runtime.EventDeleted || e.Kind == runtime.EventGap ||
		e.Phase == checkpoint.PhaseUnassigned
}

// pushBatch adds a batch and wakes the followers. The caller holds mu.
func (t *Topic) pushBatch(events []checkpoint.Event) {
	passed := t.endPos
	t.ring = append(t.ring, batch{pos: t.endPos, events: events})
	t.endPos++
	t.eventCount += len(events)
	t.addBytes(EventBytes(events))
	wakesWaiting := t.eventCount >= waitingEvents || t.bytes >= waitingBytes || slices.ContainsFunc(events, mayEndWait)
	for f := range t.followers {
		passed = min(passed, f.previousPos)
		f.isAtEnd = false
		if wakesWaiting || !f.waitsForStop {
			f.wakeReader()
		}
	}
	t.caughtUpCount = 0
	t.dropBatches(t.findBatch(passed))
	t.joinOldBatch()
	for len(t.ring) > 1 && (t.eventCount > ringSize || t.bytes > ringBytes) {
		t.dropBatches(1)
	}
}

// markCaughtUp records that a follower has read the whole ring, and drops the
// events that all followers have read. The caller holds mu.
func (t *Topic) markCaughtUp(f *Follower) {
	if !f.isAtEnd {
		f.isAtEnd = true
		t.caughtUpCount++
	}
	t.dropPassed()
}

// dropPassed empties the ring when all followers have passed it. The caller holds
// mu.
func (t *Topic) dropPassed() {
	if t.caughtUpCount == len(t.followers) && len(t.ring) > 0 {
		t.dropBatches(len(t.ring))
	}
}

// rewindFollower records that a follower has rewound.
func (t *Topic) rewindFollower(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.pos, f.passedCount = f.previousPos, f.previousCount
	if f.isAtEnd {
		f.isAtEnd = false
		t.caughtUpCount--
	}
}

// addBytes changes the size of the ring, here and in the totals of the hub. The caller
// holds mu.
func (t *Topic) addBytes(bytes int) {
	before := t.bytes
	t.bytes += bytes
	t.hub.bytes.Add(int64(bytes))
	t.hub.largeTopics.updateSize(t, before, t.bytes)
}

// dropOldestHalf drops the oldest half of the ring.
func (t *Topic) dropOldestHalf() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, left := 0, t.bytes
	for n < len(t.ring) && left > t.bytes/2 {
		left -= t.ring[n].bytes()
		n++
	}
	t.dropBatches(n)
}

// dropBatches forgets the oldest n batches.
func (t *Topic) dropBatches(n int) {
	for i := range t.ring[:n] {
		b := &t.ring[i]
		t.eventCount -= len(b.events)
		t.addBytes(-b.bytes())
		if e := &b.events[len(b.events)-1]; !e.Ephemeral {
			t.storeOnlyUpTo = e.Seq
		} else {
			t.droppedPos = b.endPos()
		}
		t.droppedCount += b.countEphemeral(b.pos)
		*b = batch{}
	}
	t.ring = t.ring[n:]
}

// firstPos returns the position of the ring's first batch.
func (t *Topic) firstPos() uint64 {
	if len(t.ring) == 0 {
		return t.endPos
	}
	return t.ring[0].pos
}

// countBefore returns how many ephemeral events there were before a position in the ring, ever. The
// caller holds mu.
func (t *Topic) countBefore(pos uint64) uint64 {
	n := t.droppedCount
	for i := range t.ring {
		b := &t.ring[i]
		if b.pos >= pos {
			break
		}
		n += b.countEphemeral(b.pos) - b.countEphemeral(pos)
	}
	return n
}

// AddDriver records a session that drives the thread here.
func (t *Topic) AddDriver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.driverCount++
}

// RemoveDriver records the end of a session on the thread and wakes the followers.
// They read in the store how the thread continues.
func (t *Topic) RemoveDriver() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.driverCount--
	for f := range t.followers {
		f.wakeReader()
	}
}

// isDriven reports whether a session drives the thread here.
func (t *Topic) isDriven() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.driverCount > 0
}

// addFollower adds a follower that reads from the end of the ring on.
func (t *Topic) addFollower(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.followers == nil {
		t.followers = make(map[*Follower]struct{})
	}
	t.followers[f] = struct{}{}
	f.joinedAt, f.pos = t.endPos, t.endPos
	f.joinedCount = t.countBefore(f.pos)
	f.passedCount = f.joinedCount
	if f.wantsRecent {
		f.recent = slices.Clone(t.recent.events)
	}
	if f.wantsValues {
		t.valuesFollowers++
	}
	if f.wantsInputs {
		t.inputsFollowers++
	}
	if f.wantsStop {
		t.stopFollowers++
	}
}

// removeFollower removes a follower. It empties the ring when all others have passed it.
func (t *Topic) removeFollower(f *Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.followers, f)
	if f.isAtEnd {
		t.caughtUpCount--
	}
	t.dropPassed()
	if f.wantsValues {
		t.valuesFollowers--
	}
	if f.wantsInputs {
		t.inputsFollowers--
	}
	if f.wantsStop {
		t.removeStopFollower()
	}
}

// WantsValues reports whether a follower wants the state with values events.
func (t *Topic) WantsValues() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.valuesFollowers > 0
}

// removeStopFollower drops what only such followers want when the last of them leaves. The caller
// holds mu.
func (t *Topic) removeStopFollower() {
	if t.stopFollowers--; t.stopFollowers == 0 && t.stoppedRun != nil {
		t.stoppedRun = &runtime.StoppedRun{Run: t.stoppedRun.Run, OpenInterrupts: t.stoppedRun.OpenInterrupts}
	}
}

// WantsOutput reports whether a follower wants the output of a run that stops.
func (t *Topic) WantsOutput() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopFollowers > 0
}

// WantsInputs reports whether a follower wants the inputs of scheduled tasks.
func (t *Topic) WantsInputs() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inputsFollowers > 0
}

// publishEphemeral delivers one ephemeral event to the followers here and, by the
// subscription, in other processes.
func (t *Topic) publishEphemeral(e checkpoint.Event, subscription checkpoint.Subscription) {
	defer t.hub.dropExcess()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDeleted {
		return
	}
	e.Seq = t.lastSeq
	if subscription != nil {
		subscription.PublishEphemeral(t.thread, e)
	}
	t.keepRecent(e)
	if len(t.followers) == 0 {
		return
	}
	t.pushBatch([]checkpoint.Event{e})
}
