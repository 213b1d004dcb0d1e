package transport_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
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
