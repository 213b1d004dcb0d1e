package feed

import (
	"slices"
	"sort"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Pieces of a message that a follower has not read, and that are not among the newest joinBehind
// batches of the ring, are joined: a follower that is far behind gets up to maxJoined of them as one
// event. So it has less to send and comes up again, and old tokens take no more of the ring than
// their text.
const (
	joinBehind     = 64
	maxJoined      = 256
	maxJoinedBytes = 64 << 10
)

// batch is what was published at once, or pieces of a message that were published one by one. Each of
// these pieces has a position of its own.
type batch struct {
	pos    uint64
	events []checkpoint.Event     // shared with their committer; the first piece when there are pieces
	pieces *payload.MessagePieces // nil = none are joined
}

// endPos returns the position after the batch.
func (b *batch) endPos() uint64 {
	if b.pieces == nil {
		return b.pos + 1
	}
	return b.pos + uint64(b.pieces.Len())
}

// bytes returns what the batch counts in the limits of rings.
func (b *batch) bytes() int {
	if b.pieces == nil {
		return EventBytes(b.events)
	}
	return b.pieces.Size()
}

// countEphemeral returns how many ephemeral events from a position on the batch has, or stands for.
func (b *batch) countEphemeral(from uint64) uint64 {
	switch e := &b.events[0]; {
	case b.pieces != nil:
		return b.endPos() - min(max(from, b.pos), b.endPos())
	case from > b.pos || !e.Ephemeral || e.Kind == runtime.EventDeleted:
		return 0
	case e.Kind == runtime.EventGap:
		return runtime.MissingEvents(e)
	}
	return uint64(len(b.events))
}

// eventsFrom returns the events from a position on, pieces of a message as one.
func (b *batch) eventsFrom(pos uint64) []checkpoint.Event {
	if b.pieces == nil {
		return b.events
	}
	e := b.events[0]
	e.Value = b.pieces.Join(int(max(pos, b.pos) - b.pos))
	return []checkpoint.Event{e}
}

// joinNext joins the next batch to this one. It returns false when they are no pieces of one message.
func (b *batch) joinNext(next *batch) bool {
	first, e := &b.events[0], &next.events[0]
	areMessages := first.Ephemeral && e.Ephemeral && first.Kind == checkpoint.EventMessage && e.Kind == checkpoint.EventMessage
	isSameSource := first.Seq == e.Seq && first.Run == e.Run && first.Namespace == e.Namespace && first.Task == e.Task &&
		first.Attempt == e.Attempt && first.Name == e.Name
	if !areMessages || !isSameSource || next.pieces != nil {
		return false
	}
	if b.bytes()+len(e.Value) > maxJoinedBytes {
		return false // a message too large to be sent would come without its value
	}
	if b.pieces != nil {
		return b.pieces.Len() < maxJoined && b.pieces.Append(e.Value)
	}
	pieces := payload.NewMessagePieces(first.Value)
	if pieces == nil || !pieces.Append(e.Value) {
		return false
	}
	b.pieces = pieces
	return true
}

// joinOldBatch joins the batch that is no longer among the newest ones to the batch before it, if it
// continues the message. The caller holds mu.
func (t *Topic) joinOldBatch() {
	at := len(t.ring) - 1 - joinBehind
	if at < 1 {
		return
	}
	before, old := &t.ring[at-1], &t.ring[at]
	size := before.bytes() + old.bytes()
	if !before.joinNext(old) {
		return
	}
	t.addBytes(before.bytes() - size)
	t.eventCount--
	t.ring = slices.Delete(t.ring, at, at+1)
}

// findBatch returns the index of the first batch of the ring that ends after a position.
func (t *Topic) findBatch(pos uint64) int {
	return sort.Search(len(t.ring), func(i int) bool { return t.ring[i].endPos() > pos })
}
