package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// A reader that gives back any part of what it was handed misses nothing of
// what is stored, wherever it came from: the ring, the store, or both.
func TestRewoundEventsComeAgain(t *testing.T) {
	c := newTokenCluster(t, 50)
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t"})
	defer f.Close()
	s := c.beginRun("first")
	dice := rand.New(rand.NewPCG(1, 2))
	var seen []checkpoint.Event
	after, mark := uint64(0), uint32(0)
	for done := false; !done; {
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		taken := len(events)
		if dice.IntN(3) == 0 {
			taken = dice.IntN(len(events))
		}
		for i := range events[:taken] {
			if e := &events[i]; !e.Ephemeral {
				seen = append(seen, *e)
				after, mark = e.Seq, runtime.EventMark(e)
				done = done || e.Kind == checkpoint.EventRunState && e.State.Terminal()
			}
		}
		if taken < len(events) {
			f.Rewind(after, mark)
		}
	}
	c.waitRun(s)
	stored, err := c.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	require.Len(t, seen, len(stored))
	for i := range stored {
		require.Equal(t, stored[i].Seq, seen[i].Seq)
		require.Equal(t, stored[i].Kind, seen[i].Kind)
	}
}

// A follower that reads a log of large events holds few of them at a time.
func TestLargeEventsAreReadAFewAtATime(t *testing.T) {
	c := newTokenCluster(t, 0)
	large := payload.Quote(strings.Repeat("x", 100<<10))
	s := c.beginRun("first")
	c.waitRun(s)
	head, err := c.store.Head(t.Context(), "t")
	require.NoError(t, err)
	change := checkpoint.Change{Thread: "t", Expect: head.Revision, Head: head}
	for range 40 {
		change.Head.LastEvent++
		change.Events = append(change.Events, checkpoint.Event{
			Seq: change.Head.LastEvent, Kind: checkpoint.EventCustom, Value: large,
		})
	}
	_, err = c.store.Apply(t.Context(), &change)
	require.NoError(t, err)
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t", After: head.LastEvent})
	defer f.Close()
	for read := 0; read < 40; {
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		require.LessOrEqual(t, len(events), 4)
		read += len(events)
	}
}

// What a follower hands out of the store at a time has 256 KB, or is one event.
func TestReturnedEventsAreBounded(t *testing.T) {
	c := newTokenCluster(t, 0)
	c.waitRun(c.beginRun("first"))
	head, err := c.store.Head(t.Context(), "t")
	require.NoError(t, err)
	change := checkpoint.Change{Thread: "t", Expect: head.Revision, Head: head}
	const events = 60
	for i := range events {
		change.Head.LastEvent++
		size := []int{10, 200 << 10, 100, 1 << 20, 1 << 20, 100 << 10, 100 << 10}[i%7]
		change.Events = append(change.Events, checkpoint.Event{
			Seq: change.Head.LastEvent, Kind: checkpoint.EventCustom, Value: payload.Quote(strings.Repeat("x", size)),
		})
	}
	_, err = c.store.Apply(t.Context(), &change)
	require.NoError(t, err)
	f := c.engine.Follow(runtime.FollowRequest{Thread: "t", After: head.LastEvent})
	defer f.Close()
	next := head.LastEvent + 1
	for next <= head.LastEvent+events {
		batch, err := f.Next(t.Context())
		require.NoError(t, err)
		bytes := 0
		for i := range batch {
			require.Equal(t, next, batch[i].Seq)
			next++
			bytes += batch[i].Size()
		}
		require.True(t, bytes <= 256<<10 || len(batch) == 1, "%d events with %d bytes", len(batch), bytes)
	}
}
