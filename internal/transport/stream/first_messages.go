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
func (a *activeStream) sendFirstMessages(ctx context.Context, first []*graphdv1.Event) error {
	for i, e := range first {
		f, err := flow.EncodeMessage(e)
		if err != nil {
			return err
		}
		if !a.memory.IsHeld() && !f.IsLarge() {
			if err := a.sender.SendMessage(ctx, f); err != nil {
				return err
			}
			continue
		}
		size := f.SendSize()
		if err = a.sender.OfferMessage(ctx, f); !errors.Is(err, ErrClientBehind) {
			if err != nil {
				return err
			}
			continue
		}
		clear(first)
		a.releaseFirst()
		if err := a.sender.WaitForRoom(ctx, size); err != nil {
			return err
		}
		return a.resendFirstMessages(ctx, i)
	}
	a.releaseFirst()
	return nil
}

// releaseFirst drops the first messages of the stream.
func (a *activeStream) releaseFirst() {
	if a.openedRun != nil {
		a.openedRun.Output, a.isOutputDropped = "", true
	}
	a.memory.Release()
}

// resendFirstMessages sends the first messages from index i on, each by itself. The
// stream continues after the state that was sent.
func (a *activeStream) resendFirstMessages(ctx context.Context, i int) error {
	if i == 0 {
		if err := a.sendReadMessage(ctx, func() (*graphdv1.Event, error) { return a.openedEvent(ctx) }); err != nil {
			return err
		}
		a.releaseFirst()
	}
	if !a.startsWithSnapshot || a.follower == nil { // nil: the events could not be followed, and the stream ends
		return nil
	}
	if err := a.sendReadMessage(ctx, func() (*graphdv1.Event, error) { return a.snapshotEvent(ctx) }); err != nil {
		return err
	}
	a.follower.Close()
	a.follower = a.followThread(a.head.Thread, a.lastSeq, a.mark, false, &a.EventSelection)
	return a.follower.CheckCursor(ctx)
}

// sendReadMessage sends a message that may need a large read. It drops a large
// message that the client does not take soon, and reads it again when the client
// reads.
func (a *activeStream) sendReadMessage(ctx context.Context, read func() (*graphdv1.Event, error)) error {
	for {
		e, err := read()
		if err != nil {
			return err
		}
		f, err := flow.EncodeMessage(e)
		if err != nil {
			return err
		}
		if !a.memory.IsHeld() && !f.IsLarge() {
			return a.sender.SendMessage(ctx, f)
		}
		size := f.SendSize()
		err = a.sender.OfferMessage(ctx, f)
		a.releaseFirst()
		if !errors.Is(err, ErrClientBehind) {
			return err
		}
		if err := a.sender.WaitForRoom(ctx, size); err != nil {
			return err
		}
	}
}
