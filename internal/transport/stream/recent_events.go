package stream

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// relayRecent sends the recent ephemeral events whose place is before an event: those that
// happened before the durable event next, or before any ephemeral one.
func (a *activeStream) relayRecent(ctx context.Context, next *checkpoint.Event) error {
	for len(a.recent) > 0 {
		e := &a.recent[0]
		if !next.Ephemeral && e.Seq >= next.Seq {
			return nil
		}
		if err := a.sendRecent(ctx, e); err != nil {
			return err
		}
		a.recent = a.recent[1:]
	}
	return nil
}

// relayWaiting sends the recent ephemeral events that come after all durable events so far, once the
// log is read to where it ended when the stream began.
func (a *activeStream) relayWaiting(ctx context.Context) error {
	if len(a.recent) == 0 || a.lastSeq < a.recent[len(a.recent)-1].Seq {
		return nil
	}
	for {
		err := a.relayRecent(ctx, &checkpoint.Event{Ephemeral: true})
		if !errors.Is(err, ErrClientBehind) {
			return err
		}
		if err := a.sender.WaitUntilRead(ctx); err != nil {
			return err
		}
	}
}

// sendRecent sends an event of the followed run, unless the client has seen what is after it.
func (a *activeStream) sendRecent(ctx context.Context, e *checkpoint.Event) error {
	if e.Seq < a.lastSeq || !a.isFollowed(e) || !a.SelectsEvent(e) {
		return nil
	}
	return a.sendLogEvent(ctx, e)
}
