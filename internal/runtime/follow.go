package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// FollowRequest says where to begin reading a thread's events.
type FollowRequest struct {
	Thread string
	After  uint64 // exclusive
	Values bool   // fill in the state of values events where it is at hand
}

// Follower reads the events of one thread, in order and without gaps in what
// is durable. It is for one goroutine.
type Follower struct {
	engine *Engine
	topic  *topic
	thread string
	values bool
	after  uint64 // newest durable event handed out
	pos    uint64 // next position in the topic's ring
	joined bool   // pos is valid
	wake   chan struct{}
}

// EventGap tells a follower that ephemeral events were dropped because it was
// slow. It is never stored.
const EventGap checkpoint.EventKind = "gap"

// Follow begins to read. The follower must be closed. It does not check that
// the thread exists.
func (e *Engine) Follow(req FollowRequest) *Follower {
	f := &Follower{
		engine: e, topic: e.hub.join(req.Thread), thread: req.Thread,
		values: req.Values, after: req.After, wake: make(chan struct{}, 1),
	}
	f.topic.subscribe(f)
	return f
}

// Close ends the reading.
func (f *Follower) Close() {
	f.topic.unsubscribe(f)
	f.engine.hub.leave(f.topic)
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
// when there are none. The error is *Error with CURSOR_TRIMMED, or the store's.
func (f *Follower) Ready(ctx context.Context) ([]checkpoint.Event, error) {
	events, behind := f.fromRing()
	if !behind {
		return events, nil
	}
	return f.fromStore(ctx)
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
	select {
	case <-f.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Woken is closed over by callers that wait for several things at once.
func (f *Follower) Woken() <-chan struct{} { return f.wake }

// fromRing hands out what the ring has, and says whether the store must be
// read because durable events are missing from it.
func (f *Follower) fromRing() (events []checkpoint.Event, behind bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.joined && f.pos < t.first {
		f.joined = false
		if f.after >= t.floor { // only ephemeral events were lost
			events = append(events, checkpoint.Event{Kind: EventGap, Seq: f.after, Ephemeral: true})
		}
	}
	if !f.joined {
		if f.after < t.floor || (t.last == 0 && len(t.ring) == 0) {
			return nil, true
		}
		f.pos, f.joined = f.place(), true
	}
	from := int(f.pos - t.first)
	for i := from; i < len(t.ring); i++ {
		if e := &t.ring[i]; e.Ephemeral || e.Seq > f.after {
			events = append(events, *e)
		}
	}
	f.pos = t.first + uint64(len(t.ring))
	f.after = max(f.after, t.last)
	return events, false
}

// place finds the first entry of the ring that the follower has not seen.
func (f *Follower) place() uint64 {
	t := f.topic
	for i := range t.ring {
		if t.ring[i].Seq > f.after {
			return t.first + uint64(i)
		}
	}
	return t.first + uint64(len(t.ring))
}

// readBatch is how many events one read of the store asks for.
const readBatch = 256

func (f *Follower) fromStore(ctx context.Context) ([]checkpoint.Event, error) {
	events, err := f.engine.store.Events(ctx, f.thread, f.after, readBatch)
	switch {
	case errors.Is(err, checkpoint.ErrThreadNotFound):
		return nil, threadNotFound(f.thread)
	case err != nil:
		return nil, storeError(err)
	}
	if len(events) > 0 {
		f.after = events[len(events)-1].Seq
	}
	return events, nil
}
