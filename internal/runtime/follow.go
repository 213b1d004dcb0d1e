package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// FollowRequest says where to begin reading a thread's events.
type FollowRequest struct {
	Thread string
	After  uint64 // exclusive
	Mark   uint32 // of the event After, which must still be the same; 0 = unknown
	Values bool   // fill in the state of values events where it is at hand
	Inputs bool   // fill in what scheduled tasks see where it is at hand
}

// Follower reads the events of one thread, in order and without gaps in what
// is durable. It is for one goroutine.
type Follower struct {
	engine *Engine
	topic  *topic
	thread string
	values bool
	inputs bool
	after  uint64 // newest durable event handed out
	mark   uint32 // of that event, 0 = unknown
	pos    uint64 // next position in the topic's ring
	since  uint64 // position in the ring when it came
	joined bool   // pos is where after is
	doubts uint64 // of the topic's, those that were looked into
	look   bool   // read the store, whatever the ring says
	ended  bool   // the thread is gone
	gapped bool   // the newest ephemeral event told of a gap
	from   uint64 // pos before the ring was looked into last; guarded by the topic's mu
	atEnd  bool   // it has passed the whole ring; guarded by the topic's mu
	stored bool   // the newest events came from the store
	batch  int    // how many events the next read of the store asks for
	large  bool   // it has met large events in the store
	wake   chan struct{}
	// unfollow ends the listening to other processes; nil as long as there is none.
	unfollow func()
}

// EventGap tells a follower that ephemeral events were dropped because it was
// slow. It is never stored.
const EventGap checkpoint.EventKind = "gap"

// Follow begins to read. The follower must be closed. It does not check that
// the thread exists.
func (e *Engine) Follow(req FollowRequest) *Follower {
	f := &Follower{
		engine: e, topic: e.hub.join(req.Thread), thread: req.Thread,
		values: req.Values, inputs: req.Inputs, after: req.After, mark: req.Mark,
		wake: make(chan struct{}, 1), batch: firstBatch,
	}
	f.topic.subscribe(f)
	f.tune()
	return f
}

// tune begins to listen to other processes, unless the thread is driven here:
// then all that happens in it is known here, and most who follow a run leave
// when it ends.
func (f *Follower) tune() {
	if f.unfollow == nil && f.engine.tuner != nil && !f.topic.isDriven() {
		f.unfollow = f.engine.tuner.Follow(f.thread)
	}
}

// Close ends the reading.
func (f *Follower) Close() {
	if f.unfollow != nil {
		f.unfollow()
	}
	f.topic.unsubscribe(f)
	f.engine.hub.leave(f.topic)
}

// Crowded reports whether others follow the thread in this process as well.
func (f *Follower) Crowded() bool {
	f.topic.mu.Lock()
	defer f.topic.mu.Unlock()
	return len(f.topic.followers) > 1
}

// After returns the number of the newest durable event that was handed out.
func (f *Follower) After() uint64 { return f.after }

func (f *Follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Ready returns the events that can be had without waiting for new ones; nil
// when there are none. The errors are *Error: CURSOR_TRIMMED, CURSOR_AHEAD and
// CURSOR_LOST, THREAD_NOT_FOUND once EventDeleted was handed out, and the
// store's.
func (f *Follower) Ready(ctx context.Context) ([]checkpoint.Event, error) {
	events, behind := f.fromRing()
	if len(events) > 0 {
		return events, nil
	}
	f.tune()
	switch {
	case f.ended:
		return nil, threadNotFound(f.thread)
	case behind, f.look:
		f.look = false
		return f.fromStore(ctx)
	}
	return nil, nil
}

// Check looks whether the log still has the event that the follower begins
// after, if its mark is known. The errors are those of Ready.
func (f *Follower) Check(ctx context.Context) error {
	if f.after == 0 || f.mark == 0 {
		return nil
	}
	events, err := f.engine.store.Events(ctx, f.thread, before(f.after), 1)
	switch {
	case errors.Is(err, checkpoint.ErrTrimmed): // nobody can tell
		return nil
	case err != nil:
		return threadError(f.thread, err)
	case len(events) == 0 || Mark(&events[0]) != f.mark:
		return f.setBack(ctx)
	}
	return nil
}

// Unread gives back what was handed out last, as far as it comes after a
// durable event, so that it need not be held while its reader waits. It is
// handed out again, unless it was ephemeral and is gone by then.
func (f *Follower) Unread(after uint64, mark uint32) {
	f.after, f.mark = after, mark
	f.topic.goBack(f)
	f.joined = false
	f.look = f.stored
	f.ended, f.gapped = false, false
}

// Next returns at least one event, waiting for it if need be.
func (f *Follower) Next(ctx context.Context) ([]checkpoint.Event, error) {
	for {
		events, err := f.Ready(ctx)
		if err != nil || len(events) > 0 {
			return events, err
		}
		if err := f.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Wait returns when there may be something new, or when ctx ends.
func (f *Follower) Wait(ctx context.Context) error {
	var poll <-chan time.Time
	if every := f.topic.patience(f.engine.opts.Poll); every > 0 && f.engine.session(f.thread) == nil {
		timer := time.NewTimer(every)
		defer timer.Stop()
		poll = timer.C
	}
	select {
	case <-f.wake:
		return nil
	case <-poll:
		f.look = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Woken is closed over by callers that wait for several things at once.
func (f *Follower) Woken() <-chan struct{} { return f.wake }

// fromRing hands out the next batch of the ring, and says whether the store
// must be read because durable events are missing from it.
func (f *Follower) fromRing() (events []checkpoint.Event, behind bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	f.from, f.stored = f.pos, false
	if f.pos < t.first {
		lost := f.pos < t.dropped
		f.pos = t.first
		if lost {
			return []checkpoint.Event{{Kind: EventGap, Seq: f.after, Ephemeral: true}}, false
		}
	}
	if f.doubts != t.doubts && !t.over {
		f.doubts = t.doubts
		return nil, true
	}
	if !t.over && (f.after < t.floor || t.last == 0) {
		return nil, true
	}
	if !f.joined {
		f.pos, f.joined = min(f.pos, f.place()), true
	}
	for at := int(f.pos - t.first); at < len(t.ring); at++ {
		f.pos++
		if f.pos <= f.since && t.ring[at][0].Ephemeral {
			continue // from before it came
		}
		if batch := f.unseen(t.ring[at]); len(batch) > 0 {
			return batch, false
		}
	}
	t.passed(f)
	return nil, false
}

// unseen is the part of a batch that was not handed out before.
func (f *Follower) unseen(batch []checkpoint.Event) []checkpoint.Event {
	if e := &batch[0]; e.Ephemeral {
		f.ended = e.Kind == EventDeleted
		if e.Seq >= f.after || f.ended {
			f.gapped = e.Kind == EventGap
			return batch
		}
		// From before what the store has shown: too late to be in order.
		if f.gapped {
			return nil
		}
		f.gapped = true
		return []checkpoint.Event{{Kind: EventGap, Seq: f.after, Ephemeral: true}}
	}
	for len(batch) > 0 && batch[0].Seq <= f.after {
		batch = batch[1:]
	}
	f.seen(batch)
	return batch
}

// seen notes the newest of some durable events that are handed out.
func (f *Follower) seen(events []checkpoint.Event) {
	if len(events) > 0 {
		newest := &events[len(events)-1]
		f.after, f.mark = newest.Seq, Mark(newest)
	}
}

// place finds the first batch of the ring that the follower has not seen.
func (f *Follower) place() uint64 {
	t := f.topic
	for i, batch := range t.ring {
		if e := &batch[len(batch)-1]; e.Seq > f.after || e.Kind == EventDeleted {
			return t.first + uint64(i)
		}
	}
	return t.first + uint64(len(t.ring))
}

// How many events one read of the store asks for: after a small read so many
// that they have about readBytes.
const (
	firstBatch = 4
	eventBatch = 32
	readBytes  = 256 << 10
)

// readBatch is how many changed questions one read of the store asks for.
const readBatch = 256

// maxReads is how many followers read the store at the same time. Together with
// eventBatch it bounds what they read when the events turn out to be large.
const maxReads = 8

// maxLargeReads is how many of those that have met large events do: with an event the
// store reads all of its superstep, several times as it was stored.
const maxLargeReads = 2

// read reads the log, of which it keeps others from reading too much at once.
func (f *Follower) read(ctx context.Context, after uint64) ([]checkpoint.Event, error) {
	turns := f.engine.reads
	if f.large {
		turns = f.engine.large
	}
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-turns }()
	return f.engine.store.Events(ctx, f.thread, after, f.batch)
}

// adjust makes the next read larger, or smaller if these events are large. One
// event of a read may be known.
func (f *Follower) adjust(events []checkpoint.Event) {
	if len(events) == 0 {
		return
	}
	bytes := sizeOf(events)
	f.large = f.large || bytes > readBytes
	fitting := len(events) * readBytes / max(bytes, 1)
	f.batch = max(2, min(fitting, 4*f.batch, eventBatch))
}

// sizeOf is about how many bytes events hold.
func sizeOf(events []checkpoint.Event) int {
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

// atMost is the beginning of some events that have readBytes together, one at least: a
// stream holds them while it waits for its client, or for room.
func atMost(events []checkpoint.Event) []checkpoint.Event {
	bytes := 0
	for i := range events {
		if bytes += events[i].Size(); bytes > readBytes && i > 0 {
			return slices.Clone(events[:i]) // the others are let go of
		}
	}
	return events
}

// fromStore reads what follows the newest event that was seen. That event is
// read too: a store that lost its newest changes has gone on without it.
func (f *Follower) fromStore(ctx context.Context) ([]checkpoint.Event, error) {
	f.look, f.stored = false, true
	asked := f.batch
	events, err := f.read(ctx, before(f.after))
	overlap := f.after > 0
	if overlap && errors.Is(err, checkpoint.ErrTrimmed) {
		events, err = f.read(ctx, f.after)
		overlap = false
	}
	switch {
	case errors.Is(err, checkpoint.ErrThreadNotFound):
		return nil, threadNotFound(f.thread)
	case err != nil:
		return nil, storeError(err)
	}
	f.adjust(events)
	// The log may hold more than was published.
	f.look = checkpoint.IsPart(events, asked, (*checkpoint.Event).Size)
	if overlap {
		if len(events) == 0 || f.mark != 0 && Mark(&events[0]) != f.mark {
			return nil, f.setBack(ctx)
		}
		f.seen(events[:1])
		if known := &events[0]; known.Size() > readBytes {
			events = slices.Clone(events) // the store may share its own
			events[0] = checkpoint.Event{}
		}
		events = events[1:]
		if len(events) == 0 && f.look { // the one that is known was all that one read holds
			if events, err = f.read(ctx, f.after); err != nil {
				return nil, threadError(f.thread, err)
			}
		}
	}
	if first := atMost(events); len(first) < len(events) {
		events, f.look = first, true
	}
	f.seen(events)
	return events, nil
}
