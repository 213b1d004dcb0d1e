package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// largeStates is an engine whose states take long to read.
type largeStates struct {
	Engine

	reading, most atomic.Int64
	entered       chan struct{}
	finish        chan struct{}
}

func (e *largeStates) read() {
	now := e.reading.Add(1)
	for most := e.most.Load(); now > most && !e.most.CompareAndSwap(most, now); {
		most = e.most.Load()
	}
	e.entered <- struct{}{}
	<-e.finish
	e.reading.Add(-1)
}

func (e *largeStates) States(context.Context, runtime.HistoryQuery) ([]runtime.Snapshot, bool, error) {
	e.read()
	return nil, false, nil
}

// However many calls ask for histories, few of these are in memory at a time; the
// others have their turn, or leave.
func TestFewCallsReadHistoriesAtATime(t *testing.T) {
	const calls = 40
	e := &largeStates{entered: make(chan struct{}, calls), finish: make(chan struct{})}
	s := &threadService{service: &service{
		pump:    &pump{streams: &streams{maxBytes: 1 << 20}, engine: e},
		reading: make(chan struct{}, maxReading),
	}}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { _, _ = s.ListCheckpoints(t.Context(), &graphdv1.ListCheckpointsRequest{ThreadId: "t"}) })
	}
	for range maxReading {
		<-e.entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "t"})
	require.ErrorIs(t, err, context.Canceled)
	close(e.finish)
	all.Wait()
	require.Len(t, e.entered, calls-maxReading, "every call had its turn")
	require.EqualValues(t, maxReading, e.most.Load())
}
