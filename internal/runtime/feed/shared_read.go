package feed

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// sharedRead is one read of the log for all followers of a thread with the same key.
// Usually many followers begin at the end of the log.
type sharedRead struct {
	done   chan struct{} // closed when the rest is set
	events []checkpoint.Event
	err    error
	gone   bool // its leader has left before the read began or ended
}

// readKey identifies reads of the log of a thread with the same result.
type readKey struct {
	after uint64
	limit int
	large bool // it holds a slot for large events
}

// readLog reads the log, of which it keeps others from reading too much at once. The
// events may be shared.
func (f *Follower) readLog(ctx context.Context, after uint64) ([]checkpoint.Event, error) {
	key := readKey{after, f.batchSize, f.hasLargeEvents}
	for {
		r, leads := f.topic.joinRead(key)
		if leads {
			f.leadRead(ctx, key, r)
			return r.events, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !r.gone {
			return r.events, r.err
		}
	}
}

// leadRead makes a read for all followers that join it before it begins. Later
// followers start another read, because events may have been stored meanwhile.
func (f *Follower) leadRead(ctx context.Context, key readKey, r *sharedRead) {
	r.gone = true
	defer close(r.done)
	turns := f.feed.readSlots
	if key.large {
		turns = f.feed.largeReadSlots
	}
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		f.topic.closeRead(key, r)
		r.err = context.Cause(ctx)
		return
	}
	defer func() { <-turns }()
	f.topic.closeRead(key, r)
	r.events, r.err = f.feed.opts.Store.Events(ctx, f.thread, key.after, key.limit)
	r.gone = r.err != nil && ctx.Err() != nil
}

// joinRead returns the read of a key that has not begun yet. The caller who leads makes it.
func (t *Topic) joinRead(key readKey) (r *sharedRead, leads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.reads[key]; open != nil {
		return open, false
	}
	r = &sharedRead{done: make(chan struct{})}
	if t.reads == nil {
		t.reads = make(map[readKey]*sharedRead)
	}
	t.reads[key] = r
	return r, true
}

// closeRead keeps others from joining a read.
func (t *Topic) closeRead(key readKey, r *sharedRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reads[key] == r {
		delete(t.reads, key)
	}
}
