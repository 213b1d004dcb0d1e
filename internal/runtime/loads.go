package runtime

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A call holds the state of its thread from when it is read until a live run counts
// it, or the call is over. What states hold that are no run's is bounded: a call
// finds out how large a state is before it reads it, and waits in line until there is
// room for a large one. Small ones, of less than the share of a run, never wait.

// loads counts the large states that calls hold.
type loads struct {
	most int64

	mu      sync.Mutex
	held    int64
	waiting list.List // of *loadWaiter, in the order in which they came
}

// loadWaiter is a call that waits for room.
type loadWaiter struct {
	bytes int64
	ready chan struct{} // closed when it has it
}

// loadPatience is how long a call waits for room.
const loadPatience = 10 * time.Second

// forever is the patience of what can't be refused; it waits until its context ends.
const forever time.Duration = 0

// load is the room that one call has. The zero load has none.
type load struct {
	of    *loads
	bytes int64
	read  int64 // bytes of what was read
	// Of what is shown: how often it is held, and for how many bytes there is room at least.
	shows bool
	times int64
	least int64
	// Whether it is not waited for, and what was wanted then.
	refuses bool
	wanted  int64
}

// await waits for room for some bytes, in place of what the load has. A state that
// is larger than all of it has to be alone.
func (l *load) await(ctx context.Context, bytes int64, patience time.Duration) error {
	l.end()
	if l.refuses && !l.of.tryEnter(bytes) {
		l.wanted = bytes
		return errNoRoomYet
	}
	if l.refuses {
		l.bytes = bytes
		return nil
	}
	x := l.of.enter(bytes)
	if x == nil {
		l.bytes = bytes
		return nil
	}
	var late <-chan time.Time
	if patience != forever {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	var err error
	select {
	case <-x.ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late:
		err = Errorf(ReasonTooManyRequests, "calls hold as much of large states as they may, and this one would hold %d bytes; "+
			"nothing was changed: try again", bytes).Beyond("max-live-bytes", l.of.most, 0)
	}
	if err != nil && l.of.leave(x) {
		return err
	}
	l.bytes = bytes
	return nil
}

// settle gives back what was not needed for what was read. What is shown keeps it
// all until it is on its way.
func (l *load) settle() {
	if l.read < l.bytes && !l.shows {
		l.of.release(l.bytes - l.read)
		l.bytes = l.read
	}
}

// end gives back what the load has.
func (l *load) end() {
	if l.bytes > 0 {
		l.of.release(l.bytes)
	}
	l.bytes, l.read = 0, 0
}

// enter takes room, or joins those that wait for it: nil when there was room.
func (l *loads) enter(bytes int64) *loadWaiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Len() == 0 && l.fits(bytes) {
		l.held += bytes
		return nil
	}
	x := &loadWaiter{bytes: bytes, ready: make(chan struct{})}
	l.waiting.PushBack(x)
	return x
}

// tryEnter takes room if there is some.
func (l *loads) tryEnter(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.Len() > 0 || !l.fits(bytes) {
		return false
	}
	l.held += bytes
	return true
}

// fits reports whether there is room. The caller holds mu.
func (l *loads) fits(bytes int64) bool { return l.held == 0 || l.held+bytes <= l.most }

// leave ends the waiting of a call; false says that it has its room already.
func (l *loads) leave(x *loadWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := l.waiting.Front(); at != nil; at = at.Next() {
		if at.Value == x {
			l.waiting.Remove(at)
			l.admit() // it may have kept smaller ones behind it
			return true
		}
	}
	return false
}

func (l *loads) release(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held -= bytes
	l.admit()
}

// admit lets those in that have room, in their order. The caller holds mu.
func (l *loads) admit() {
	for at := l.waiting.Front(); at != nil; at = l.waiting.Front() {
		x := at.Value.(*loadWaiter) //nolint:forcetypeassert,errcheck // nothing else is in the list
		if !l.fits(x.bytes) {
			return
		}
		l.held += x.bytes
		l.waiting.Remove(at)
		close(x.ready)
	}
}

// newLoad is a load that has no room yet.
func (e *Engine) newLoad() load { return load{of: &e.loads} }

// readLarge repeats a read that found a checkpoint too large for the room that
// a load has, when there is room for it.
func (e *Engine) readLarge(ctx context.Context, held *load, patience time.Duration, read func() error) error {
	for {
		err := read()
		large, ok := errors.AsType[*checkpoint.LargeError](err)
		if !ok {
			return err
		}
		if err := held.await(ctx, held.need(e.sizeOfLarge(large)), patience); err != nil {
			return err
		}
	}
}

// unlessLarge is nil for a checkpoint that is read again when there is room for it.
func unlessLarge(err error) error {
	if _, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return nil
	}
	return err
}

// need is for how many bytes a state of so many needs room.
func (l *load) need(bytes int64) int64 {
	if l.shows {
		return max(bytes*l.times, l.least)
	}
	return bytes
}

// sizeOfLarge is how many bytes to make room for: the most that a state may have
// when the size is unknown.
func (e *Engine) sizeOfLarge(large *checkpoint.LargeError) int64 {
	if large.Bytes > 0 {
		return int64(large.Bytes)
	}
	return e.opts.Limits.State
}

// checkpointWithin reads a checkpoint for which a load has room, or that is small. The
// error is a *checkpoint.LargeError when it is neither.
func (e *Engine) checkpointWithin(ctx context.Context, held *load, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	if held == nil || held.bytes > 0 {
		cp, err := e.store.Checkpoint(ctx, thread, namespace, id)
		if err == nil && held != nil {
			held.read += int64(cp.Size())
		}
		return cp, err
	}
	most := e.bytes.share
	if held.shows {
		most = max(most, e.loads.small())
	}
	return e.line.checkpointWithin(ctx, thread, namespace, id, int(most))
}

// pendingWithin reads the progress of a superstep for which a load has room, or that is
// small. The error is a *checkpoint.LargeError when it is neither.
func (e *Engine) pendingWithin(ctx context.Context, held *load, thread, id string) (checkpoint.Pending, error) {
	p, err := e.store.Pending(ctx, thread, id)
	if err != nil {
		return p, storeError(err)
	}
	if err := held.within(sizeOfPending(&p)); err != nil {
		return checkpoint.Pending{}, err
	}
	return p, nil
}

// largeOrStoreError is storeError for all but a checkpoint that is read again.
func largeOrStoreError(err error) error {
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large
	}
	return storeError(err)
}

// seqOfCheckpoint is the number of a checkpoint of the root, of which it reads little.
func (e *Engine) seqOfCheckpoint(ctx context.Context, thread, id string) (uint64, error) {
	cp, err := e.line.checkpointWithin(ctx, thread, "", id, int(e.bytes.share))
	if large, ok := errors.AsType[*checkpoint.LargeError](err); ok {
		return large.Seq, nil
	}
	if err != nil {
		return 0, err
	}
	return cp.Seq, nil
}

// checkpointWithin asks the store, where it can tell whether a checkpoint is large.
func (l *line) checkpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	reader, ok := l.Store.(checkpoint.BoundedReader)
	if !ok {
		return l.Checkpoint(ctx, thread, namespace, id)
	}
	if cp := lookOf(ctx, thread).at(namespace, id); cp != nil {
		return cp, nil
	}
	return bounded(ctx, l, func(ctx context.Context) (*checkpoint.Checkpoint, error) {
		return reader.CheckpointWithin(ctx, thread, namespace, id, most)
	})
}
