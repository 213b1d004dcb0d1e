package runtime

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// What a call shows it holds until its answer is encoded: the state as it was read, the
// values that are made of it, and the answer. A call or stream whose context has a
// Room keeps room for all of that until it ends the Room.

// Room is what one call or stream holds of large states that it shows. The zero Room
// holds nothing. One goroutine uses it.
type Room struct {
	// Times is how many large things are held together, such as the output of a run
	// and a state; 0 = 1.
	Times int64
	// Refuses says that a read of something large for which there is no room fails with
	// an error that IsRefused: who reads it holds other things, gives them back and calls Await.
	Refuses bool

	load
}

// errNoRoomYet says that something is large, and that there is no room for it now.
var errNoRoomYet = errors.New("there is no room yet for what is to be shown")

// IsRefused reports whether a read failed because of Refuses.
func IsRefused(err error) bool { return errors.Is(err, errNoRoomYet) }

// Await waits for room for what was refused.
func (r *Room) Await(ctx context.Context) error {
	r.refuses = false
	return r.await(ctx, r.wanted, forever)
}

// RoomKey is the key of a *Room in a context.
type RoomKey struct{}

// End gives back what the room has: what was read is on its way, or is dropped.
func (r *Room) End() {
	if r.bytes > 0 {
		r.end()
	}
}

// Taken reports whether something large was read.
func (r *Room) Taken() bool { return r.bytes > 0 }

// smallShown is how many bytes are shown without room for them. It is less where
// all large states together have less than some times as much.
const smallShown = 256 << 10

// copiesShown is how often a state is held that is shown: as the store has given it, as
// it was decoded, as one value, and encoded; and some of what is no longer needed.
const copiesShown = 5

// shown is the load for what a read shows: that of the context's Room, or own, which
// the caller ends. Answer is how many bytes of it are shown together, 0 = one state.
func (e *Engine) shown(ctx context.Context, own *load, answer int) *load {
	if l := e.shownIn(ctx, answer); l != nil {
		return l
	}
	*own = e.newLoad()
	return own
}

// shownIn is the load of the context's Room; nil = it has none.
func (e *Engine) shownIn(ctx context.Context, answer int) *load {
	r, ok := ctx.Value(RoomKey{}).(*Room)
	if !ok {
		return nil
	}
	r.refuses = r.Refuses
	r.of, r.shows = &e.loads, true
	r.times = copiesShown * max(r.Times, 1)
	r.least = max(r.least, copiesShown*int64(answer))
	return &r.load
}

// Reserve takes room for something of so many bytes that is about to be encoded, in the
// Room of the context. Where that refuses, the error IsRefused.
func (f *Follower) Reserve(ctx context.Context, bytes int) error {
	room := f.engine.shownIn(ctx, 0)
	if room == nil || int64(bytes) <= room.of.small() {
		return nil
	}
	need := room.need(int64(bytes))
	if room.bytes >= need {
		return nil
	}
	return room.await(ctx, need, forever)
}

// within refuses what was read and is large, unless there is room for it: it is
// dropped then, and read again in its turn.
func (l *load) within(bytes int) error {
	switch {
	case l == nil, int64(bytes) <= l.of.small():
		return nil
	case l.bytes == 0:
		return &checkpoint.LargeError{Bytes: bytes}
	}
	l.read += int64(bytes)
	return nil
}

// listWithin lists records for a load. A list that turns out to be large is read again when
// there is room for it.
func listWithin[T any](
	ctx context.Context, e *Engine, room *load, patience time.Duration, size func(*T) int, read func() ([]T, error),
) (list []T, err error) {
	err = e.readLarge(ctx, room, patience, func() error {
		if list, err = read(); err != nil {
			return storeError(err)
		}
		bytes := 0
		for i := range list {
			bytes += size(&list[i])
		}
		if err := room.within(bytes); err != nil {
			list = nil // it is not held while the call waits
			return err
		}
		return nil
	})
	return list, err
}

// small is how many bytes are shown without room for them.
func (l *loads) small() int64 { return max(min(smallShown, l.most/16), leastShare) }

// sizeOfPending is how many bytes the progress of a superstep has.
func sizeOfPending(p *checkpoint.Pending) (n int) {
	for i := range p.Tasks {
		n += len(p.Tasks[i].Update)
		for k := range p.Tasks[i].Writes {
			n += len(p.Tasks[i].Writes[k].Value)
		}
	}
	for i := range p.Memos {
		n += len(p.Memos[i].Value)
	}
	for i := range p.Interrupts {
		n += p.Interrupts[i].Size()
	}
	return n
}
