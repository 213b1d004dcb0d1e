package stream

import (
	"context"
	"errors"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// The first and the last message of a stream may be large: they hold the output of
// a run, or a state. A client that does not read must not occupy it, or memory for
// it.

// sendFirstMessages sends the first messages of the stream. It drops a large
// message that the client does not take soon, and reads it again when the client
// reads.
func (w *activeStream) sendFirstMessages(ctx context.Context, first []*graphdv1.Event) error {
	for i, e := range first {
		f, err := flow.EncodeMessage(e)
		if err != nil {
			return err
		}
		if !w.memory.IsHeld() && !f.IsLarge() {
			if err := w.sender.SendMessage(ctx, f); err != nil {
				return err
			}
			continue
		}
		size := f.SendSize()
		if err = w.sender.OfferMessage(ctx, f); !errors.Is(err, ErrClientBehind) {
			if err != nil {
				return err
			}
			continue
		}
		clear(first)
		w.releaseFirst()
		if err := w.sender.WaitForRoom(ctx, size); err != nil {
			return err
		}
		return w.resendFirstMessages(ctx, i)
	}
	w.releaseFirst()
	return nil
}

// releaseFirst drops the first messages of the stream.
func (w *activeStream) releaseFirst() {
	if w.openedRun != nil {
		w.openedRun.Output, w.isOutputDropped = "", true
	}
	w.memory.Release()
}

// resendFirstMessages sends the first messages from index i on, one at a time. The
// stream continues after the state that was sent.
func (w *activeStream) resendFirstMessages(ctx context.Context, i int) error {
	if i == 0 {
		if err := w.sendReadMessage(ctx, func() (*graphdv1.Event, error) { return w.openedEvent(ctx) }); err != nil {
			return err
		}
		w.releaseFirst()
	}
	if !w.startsWithSnapshot || w.follower == nil { // nil: the events could not be followed, and the stream ends
		return nil
	}
	if err := w.sendReadMessage(ctx, func() (*graphdv1.Event, error) { return w.snapshotEvent(ctx) }); err != nil {
		return err
	}
	w.follower.Close()
	w.follower = w.followThread(w.head.Thread, w.lastSeq, w.mark, &w.EventSelection)
	return w.follower.CheckCursor(ctx)
}

// sendReadMessage sends a message that may need a large read. It drops a large
// message that the client does not take soon, and reads it again when the client
// reads.
func (w *activeStream) sendReadMessage(ctx context.Context, read func() (*graphdv1.Event, error)) error {
	for {
		e, err := read()
		if err != nil {
			return err
		}
		f, err := flow.EncodeMessage(e)
		if err != nil {
			return err
		}
		if !w.memory.IsHeld() && !f.IsLarge() {
			return w.sender.SendMessage(ctx, f)
		}
		size := f.SendSize()
		err = w.sender.OfferMessage(ctx, f)
		w.releaseFirst()
		if !errors.Is(err, ErrClientBehind) {
			return err
		}
		if err := w.sender.WaitForRoom(ctx, size); err != nil {
			return err
		}
	}
}
