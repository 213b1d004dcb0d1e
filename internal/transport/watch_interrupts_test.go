package transport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

func TestWatchInterrupts(t *testing.T) {
	e := newFakeEngine()
	for i := range 40 { // a long history of interrupts that are closed
		e.interrupts = append(e.interrupts, checkpoint.Interrupt{
			ID: fmt.Sprint("old", i), State: checkpoint.InterruptConsumed, Change: uint64(3 * (i + 1)),
		})
	}
	e.interrupts = append(e.interrupts, checkpoint.Interrupt{ID: "i1", State: checkpoint.InterruptOpen, Change: 200})
	c := startServer(t, e)
	stream, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	first, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, "i1", first.GetInterrupt().GetInterruptId())
	mark, err := stream.Recv()
	require.NoError(t, err)
	require.True(t, mark.GetBookmark())

	e.mu.Lock()
	e.interrupts = append(e.interrupts, checkpoint.Interrupt{ID: "i2", State: checkpoint.InterruptAnswered, Change: 201})
	e.mu.Unlock()
	e.appendEvents()
	next, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, "i2", next.GetInterrupt().GetInterruptId())

	again, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{ResumeToken: mark.GetResumeToken()})
	require.NoError(t, err)
	next, err = again.Recv()
	require.NoError(t, err)
	require.Equal(t, "i2", next.GetInterrupt().GetInterruptId())

	other, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{
		ResumeToken: mark.GetResumeToken(), Filter: "graph = g",
	})
	require.NoError(t, err)
	_, err = other.Recv()
	require.Equal(t, "INVALID_CURSOR", requireErrorInfo(t, err).GetReason())
}

func TestWatchInterruptsFromNowOn(t *testing.T) {
	e := newFakeEngine()
	e.interrupts = []checkpoint.Interrupt{{ID: "i1", State: checkpoint.InterruptOpen, Change: 200}}
	c := startServer(t, e)
	stream, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{StartNow: true})
	require.NoError(t, err)
	mark, err := stream.Recv()
	require.NoError(t, err)
	require.True(t, mark.GetBookmark(), "without what is open")
	e.mu.Lock()
	e.interrupts = append(e.interrupts, checkpoint.Interrupt{ID: "i2", State: checkpoint.InterruptOpen, Change: 201})
	e.mu.Unlock()
	e.appendEvents()
	for _, r := range []*graphdv1.WatchInterruptsRequest{nil, {ResumeToken: mark.GetResumeToken()}} {
		if r != nil {
			stream, err = c.WatchInterrupts(t.Context(), r)
			require.NoError(t, err)
		}
		next, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, "i2", next.GetInterrupt().GetInterruptId())
	}
	stream, err = c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{StartNow: true, ResumeToken: mark.GetResumeToken()})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.ErrorContains(t, err, "start_now")
}

// Changes that are there at the same time come in one message, and each watch gets them as a watch
// that takes them one by one.
func TestWatchInterruptsInBatches(t *testing.T) {
	e := newFakeEngine()
	const open, changed = 30, 70 // more than a message has
	for i := range open {
		e.interrupts = append(e.interrupts, checkpoint.Interrupt{
			ID: fmt.Sprint("open", i), State: checkpoint.InterruptOpen, Change: uint64(i + 1), Value: payload.Quote(strings.Repeat("x", 4<<10)),
		})
	}
	c := startServer(t, e)
	refused, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{MaxChanges: -1})
	require.NoError(t, err)
	_, err = refused.Recv()
	require.ErrorContains(t, err, "max_changes")

	one, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
	require.NoError(t, err)
	many, err := c.WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{MaxChanges: 20})
	require.NoError(t, err)
	requireSameChanges := func(count int) {
		t.Helper()
		singles, tokens := readChanges(t, one, count)
		listed, listedTokens := readChanges(t, many, count)
		require.Equal(t, singles, listed)
		require.Less(t, len(listedTokens), len(tokens)/2)
		require.Equal(t, tokens[len(tokens)-1], listedTokens[len(listedTokens)-1], "it goes on after the last of them")
	}
	requireSameChanges(open)
	for _, stream := range []grpc.ServerStreamingClient[graphdv1.InterruptChange]{one, many} {
		mark, err := stream.Recv()
		require.NoError(t, err)
		require.True(t, mark.GetBookmark(), "all that were open have been sent")
	}
	e.mu.Lock()
	for i := range changed {
		e.interrupts = append(e.interrupts, checkpoint.Interrupt{
			ID: fmt.Sprint("changed", i), State: checkpoint.InterruptAnswered, Change: uint64(1000 + i),
		})
	}
	e.mu.Unlock()
	e.appendEvents()
	requireSameChanges(changed)
}

// readChanges reads so many changes, and the token of each message.
func readChanges(t *testing.T, stream grpc.ServerStreamingClient[graphdv1.InterruptChange], count int) (ids, tokens []string) {
	t.Helper()
	for len(ids) < count {
		m, err := stream.Recv()
		require.NoError(t, err)
		tokens = append(tokens, m.GetResumeToken())
		if len(m.GetChanges()) == 0 {
			ids = append(ids, m.GetInterrupt().GetInterruptId())
			continue
		}
		require.Nil(t, m.GetInterrupt())
		require.LessOrEqual(t, len(m.GetChanges()), 20)
		require.LessOrEqual(t, proto.Size(m), 40<<10)
		for _, change := range m.GetChanges() {
			require.Empty(t, change.GetResumeToken())
			ids = append(ids, change.GetInterrupt().GetInterruptId())
		}
	}
	return ids, tokens
}
