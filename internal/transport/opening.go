package transport

import (
	"context"
	"errors"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// What a stream begins and ends with may be large: the output of a run, and a state. A
// client that does not read must not keep it, or room for it, from others.

// sendFirst sends what the stream begins with. What is large and is not taken soon is
// let go of, and read again when the client reads.
func (w *watching) sendFirst(ctx context.Context, first []*graphdv1.Event) error {
	for i, e := range first {
		f, err := encode(e)
		if err != nil {
			return err
		}
		if !w.room.Taken() && !f.isLarge() {
			if err := w.out.send(ctx, f); err != nil {
				return err
			}
			continue
		}
		size := f.size()
		if err = w.out.offer(ctx, f); !errors.Is(err, errBehind) {
			if err != nil {
				return err
			}
			continue
		}
		clear(first)
		w.letGo()
		if err := w.out.awaitRoom(ctx, size, w.stall, errStalled); err != nil {
			return err
		}
		return w.sendFirstAgain(ctx, i)
	}
	w.letGo()
	return nil
}

// letGo drops what the stream has begun with.
func (w *watching) letGo() {
	if w.opened != nil {
		w.opened.Output, w.stripped = "", true
	}
	w.room.End()
}

// sendFirstAgain sends what the stream begins with from the message at i on, one
// message at a time. What follows the state begins after the one that was sent.
func (w *watching) sendFirstAgain(ctx context.Context, i int) error {
	if i == 0 {
		if err := w.sendRead(ctx, func() (*graphdv1.Event, error) { return w.openedEvent(ctx) }); err != nil {
			return err
		}
		w.letGo()
	}
	if !w.snapshot || w.follower == nil { // nil: what follows could not be read, and the stream ends
		return nil
	}
	if err := w.sendRead(ctx, func() (*graphdv1.Event, error) { return w.snapshotEvent(ctx) }); err != nil {
		return err
	}
	w.follower.Close()
	w.follower = w.listen(w.head.Thread, w.after, w.mark, &w.selection)
	return w.follower.Check(ctx)
}

// sendRead sends a message for which much may have to be read. A large one that the
// client does not take soon is let go of, and read again when it does.
func (w *watching) sendRead(ctx context.Context, read func() (*graphdv1.Event, error)) error {
	for {
		e, err := read()
		if err != nil {
			return err
		}
		f, err := encode(e)
		if err != nil {
			return err
		}
		if !w.room.Taken() && !f.isLarge() {
			return w.out.send(ctx, f)
		}
		size := f.size()
		err = w.out.offer(ctx, f)
		w.letGo()
		if !errors.Is(err, errBehind) {
			return err
		}
		if err := w.out.awaitRoom(ctx, size, w.stall, errStalled); err != nil {
			return err
		}
	}
}
