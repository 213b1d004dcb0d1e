package feed

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Follower reads the events of one thread in order. It skips no durable event.
// One goroutine uses it.
type Follower struct {
	feed           *Feed
	topic          *Topic
	thread         string
	wantsValues    bool
	wantsInputs    bool
	wantsRecent    bool
	wantsStop      bool
	waitsForStop   bool               // is not woken for each of the other events
	recent         []checkpoint.Event // ephemeral events from before it came
	after          uint64             // newest durable event handed out
	afterMark      uint32             // of that event, 0 = unknown
	pos            uint64             // next position in the topic's ring
	passedCount    uint64             // ephemeral events of the topic before pos
	joinedAt       uint64             // position in the ring when it came
	joinedCount    uint64             // ephemeral events of the topic before it came
	isPositioned   bool               // pos is the position of after
	generation     uint64             // of the topic's, those that were looked into
	mustReadStore  bool               // read the store, even if the ring has the events
	isEnded        bool               // the thread is gone
	previousPos    uint64             // pos before the last look into the ring; guarded by the topic's mu
	previousCount  uint64             // passedCount at previousPos
	isAtEnd        bool               // it has passed the whole ring; guarded by the topic's mu
	isFromStore    bool               // the newest events came from the store
	batchSize      int                // number of events that the next read of the store asks for
	hasLargeEvents bool               // it has met large events in the store
	wake           chan struct{}
	// unfollow ends the subscription to other processes; nil = there is none.
	unfollow func()
}

// Follow begins to read. The follower must be closed. It does not check that
// the thread exists.
func (f *Feed) Follow(req runtime.FollowRequest) *Follower {
	follower := &Follower{
		feed: f, topic: f.hub.acquireTopic(req.Thread), thread: req.Thread,
		wantsValues: req.WithValues, wantsInputs: req.WithInputs, wantsRecent: req.WithRecent, wantsStop: req.WithStop, waitsForStop: req.UntilStop,
		after: req.After, afterMark: req.Mark,
		wake: make(chan struct{}, 1), batchSize: firstReadEvents,
	}
	follower.topic.addFollower(follower)
	follower.subscribeRemote()
	return follower
}

// subscribeRemote subscribes to changes of other processes, unless the thread is
// driven here.
func (f *Follower) subscribeRemote() {
	if f.unfollow == nil && f.feed.subscription != nil && !f.topic.isDriven() {
		f.unfollow = f.feed.subscription.Follow(f.thread)
	}
}

// Close ends the reading.
func (f *Follower) Close() {
	if f.unfollow != nil {
		f.unfollow()
	}
	f.topic.removeFollower(f)
	f.feed.hub.releaseTopic(f.topic)
}

// IsShared reports whether other followers of this process follow the thread too.
func (f *Follower) IsShared() bool {
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	return len(f.topic.followers) > 1
}

// SkipTo continues after a durable event, which may be before or after the newest that
// was handed out.
func (f *Follower) SkipTo(event uint64) { f.after, f.afterMark = event, 0 }

// ReserveMemory reserves bytes for a value that is about to be encoded, in the memory of
// a call; nil = none. Errors: the cause of ctx, and an error for which
// runtime.IsMemoryRefused reports true.
func (f *Follower) ReserveMemory(ctx context.Context, memory *runtime.CallMemory, bytes int) error {
	return f.feed.opts.ReserveMemory(ctx, memory, bytes)
}

// After returns the number of the newest durable event that was handed out.
func (f *Follower) After() uint64 { return f.after }

func (f *Follower) wakeReader() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// ReadAvailable returns the events that are available without waiting; nil when
// there are none. The errors are *Error: CURSOR_TRIMMED, CURSOR_AHEAD and
// CURSOR_LOST, THREAD_NOT_FOUND after EventDeleted was handed out, and those of the
// store.
func (f *Follower) ReadAvailable(ctx context.Context) ([]checkpoint.Event, error) {
	events, behind := f.readRing()
	if len(events) > 0 {
		return events, nil
	}
	f.subscribeRemote()
	switch {
	case f.isEnded:
		return nil, runtime.ThreadNotFoundError(f.thread)
	case behind, f.mustReadStore:
		f.mustReadStore = false
		return f.readStore(ctx)
	}
	return nil, nil
}

// CheckCursor checks that the log still has the event after which the follower
// begins, if its mark is known. The errors are those of ReadAvailable.
func (f *Follower) CheckCursor(ctx context.Context) error {
	if f.after == 0 || f.afterMark == 0 {
		return nil
	}
	events, err := f.feed.opts.Store.Events(ctx, f.thread, runtime.CursorBefore(f.after), 1)
	switch {
	case errors.Is(err, checkpoint.ErrTrimmed): // that is unknown
		return nil
	case err != nil:
		return runtime.TranslateThreadError(f.thread, err)
	case len(events) == 0 || runtime.EventMark(&events[0]) != f.afterMark:
		return f.lostEventError(ctx)
	}
	return nil
}

// Rewind undoes the last read after a durable event, so that the events need not be
// held while the reader waits. The follower reads them again, except dropped
// ephemeral events.
func (f *Follower) Rewind(after uint64, mark uint32) {
	f.after, f.afterMark = after, mark
	f.topic.rewindFollower(f)
	f.isPositioned = false
	f.mustReadStore = f.isFromStore
	f.isEnded = false
}

// Next returns at least one event, and waits for it if necessary. The errors
// are those of ReadAvailable, and the cause of ctx when ctx ends.
func (f *Follower) Next(ctx context.Context) ([]checkpoint.Event, error) {
	for {
		events, err := f.ReadAvailable(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if err := f.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Wait returns when there may be new events. The error is the cause of ctx.
func (f *Follower) Wait(ctx context.Context) error {
	var poll <-chan time.Time
	if every := f.topic.pollInterval(f.feed.opts.PollInterval); every > 0 && !f.feed.opts.IsLive(f.thread) {
		timer := time.NewTimer(every)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-f.wake:
		return nil
	case <-poll:
		f.mustReadStore = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Wakeups returns the channel that signals new events, for callers that wait for
// several things.
func (f *Follower) Wakeups() <-chan struct{} { return f.wake }

// readRing returns the next batch of the ring, and reports whether durable
// events are missing from the ring, so that the store must be read.
func (f *Follower) readRing() (events []checkpoint.Event, behind bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	f.previousPos, f.previousCount, f.isFromStore = f.pos, f.passedCount, false
	if first := t.firstPos(); f.pos < first {
		isLost, seen := f.pos < t.droppedPos, max(f.passedCount, f.joinedCount)
		f.pos, f.passedCount = first, t.droppedCount
		if isLost {
			return f.newGap(t.droppedCount - min(seen, t.droppedCount)), false
		}
	}
	if f.generation != t.generation && !t.isDeleted {
		f.generation = t.generation
		return nil, true
	}
	if !t.isDeleted && (f.after < t.storeOnlyUpTo || t.lastSeq == 0) {
		return nil, true
	}
	if !f.isPositioned {
		f.pos, f.isPositioned = min(f.pos, f.findPosition()), true
		f.passedCount = t.countBefore(f.pos)
	}
	late, isAnyLate := uint64(0), false
	for at := t.findBatch(f.pos); at < len(t.ring); at++ {
		b, from := &t.ring[at], f.pos
		isLate := f.isLate(&b.events[0])
		if isAnyLate && !isLate {
			return f.newGap(late), false
		}
		f.pos = b.endPos()
		f.passedCount += b.countEphemeral(from)
		switch {
		case f.pos <= f.joinedAt && b.events[0].Ephemeral: // from before it came
		case isLate:
			late, isAnyLate = late+b.countEphemeral(from), true
		default:
			if events := f.skipSeen(b.eventsFrom(max(from, f.joinedAt))); len(events) > 0 {
				return events, false
			}
		}
	}
	if isAnyLate {
		return f.newGap(late), false
	}
	t.markCaughtUp(f)
	return nil, false
}

// isLate reports whether an event of the ring is an ephemeral one from before the durable events that
// were handed out: too late to be in order.
func (f *Follower) isLate(e *checkpoint.Event) bool {
	return e.Ephemeral && e.Seq < f.after && e.Kind != runtime.EventDeleted
}

// skipSeen returns the part of a batch that was not handed out before.
func (f *Follower) skipSeen(batch []checkpoint.Event) []checkpoint.Event {
	if e := &batch[0]; e.Ephemeral {
		f.isEnded = e.Kind == runtime.EventDeleted
		return batch
	}
	for len(batch) > 0 && batch[0].Seq <= f.after {
		batch = batch[1:]
	}
	f.advanceCursor(batch)
	return batch
}

// newGap reports that ephemeral events are missing; 0 = it is not known how many.
func (f *Follower) newGap(missing uint64) []checkpoint.Event {
	return []checkpoint.Event{{Kind: runtime.EventGap, Seq: f.after, Ephemeral: true, Value: runtime.GapValue(missing)}}
}

// advanceCursor moves the cursor to the newest durable event of some events.
func (f *Follower) advanceCursor(events []checkpoint.Event) {
	if len(events) > 0 {
		newest := &events[len(events)-1]
		f.after, f.afterMark = newest.Seq, runtime.EventMark(newest)
	}
}

// findPosition finds the first batch of the ring that the follower has not seen.
func (f *Follower) findPosition() uint64 {
	t := f.topic
	for i := range t.ring {
		events := t.ring[i].events
		if e := &events[len(events)-1]; e.Seq > f.after || e.Kind == runtime.EventDeleted {
			return t.ring[i].pos
		}
	}
	return t.endPos
}

// Limits of the number of events in one read of the store. After a small read the next
// read asks for about targetReadBytes.
const (
	firstReadEvents = 16
	maxReadEvents   = 256
	targetReadBytes = 256 << 10
)

// maxConcurrentReads is the number of concurrent reads of the store. With
// checkpoint.ReadBytes it bounds the memory of reads when events turn out to be large.
const maxConcurrentReads = 8

// maxConcurrentLargeReads is the number of concurrent reads after large events. For one
// event the store reads its whole superstep, several times its stored size.
const maxConcurrentLargeReads = 2

// adaptBatchSize makes the next read larger, or smaller if these events are large. An
// event of a read may be known.
func (f *Follower) adaptBatchSize(events []checkpoint.Event) {
	if len(events) == 0 {
		return
	}
	bytes := EventBytes(events)
	f.hasLargeEvents = f.hasLargeEvents || bytes > targetReadBytes
	fitting := len(events) * targetReadBytes / max(bytes, 1)
	f.batchSize = max(2, min(fitting, 4*f.batchSize, maxReadEvents))
}

// EventBytes estimates the bytes that events hold.
func EventBytes(events []checkpoint.Event) int {
	bytes := 0
	for i := range events {
		e := &events[i]
		bytes += len(e.Value)
		for k := range e.Interrupts {
			q := &e.Interrupts[k]
			bytes += len(q.Value) + len(q.Schema) + len(q.Response) + len(q.Message)
		}
	}
	return bytes
}

// firstReadBytes returns the first events that have targetReadBytes together, at least
// one event. A stream holds them while it waits for its client, or for memory.
func firstReadBytes(events []checkpoint.Event) []checkpoint.Event {
	bytes := 0
	for i := range events {
		if bytes += events[i].Size(); bytes > targetReadBytes && i > 0 {
			return slices.Clone(events[:i]) // the others are dropped
		}
	}
	return events
}

// readStore reads the events from the newest known event on. It reads that event again,
// because a store that lost its newest changes has replaced it.
func (f *Follower) readStore(ctx context.Context) ([]checkpoint.Event, error) {
	f.mustReadStore, f.isFromStore = false, true
	asked := f.batchSize
	events, err := f.readLog(ctx, runtime.CursorBefore(f.after))
	overlap := f.after > 0
	if overlap && errors.Is(err, checkpoint.ErrTrimmed) {
		events, err = f.readLog(ctx, f.after)
		overlap = false
	}
	switch {
	case errors.Is(err, checkpoint.ErrThreadNotFound):
		return nil, runtime.ThreadNotFoundError(f.thread)
	case err != nil:
		f.mustReadStore = true // the reader may have broken the read off
		return nil, runtime.TranslateStoreError(err)
	}
	f.adaptBatchSize(events)
	// The log may hold more than was published.
	f.mustReadStore = checkpoint.IsPart(events, asked, (*checkpoint.Event).Size)
	if overlap {
		if len(events) == 0 || f.afterMark != 0 && runtime.EventMark(&events[0]) != f.afterMark {
			return nil, f.lostEventError(ctx)
		}
		f.advanceCursor(events[:1])
		if known := &events[0]; known.Size() > targetReadBytes {
			events = slices.Clone(events) // the store may share its own
			events[0] = checkpoint.Event{}
		}
		events = events[1:]
		if len(events) == 0 && f.mustReadStore { // the known event alone filled the read
			if events, err = f.readLog(ctx, f.after); err != nil { // it must be read still
				return nil, runtime.TranslateThreadError(f.thread, err)
			}
		}
	}
	if first := firstReadBytes(events); len(first) < len(events) {
		events, f.mustReadStore = first, true
	}
	f.advanceCursor(events)
	return events, nil
}
