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

// slowHistories is an engine whose states take long to read.
type slowHistories struct {
	Engine

	activeReads, maxActiveReads atomic.Int64
	entered                     chan struct{}
	finish                      chan struct{}
}

func (s *slowHistories) waitForFinish() {
	now := s.activeReads.Add(1)
	for most := s.maxActiveReads.Load(); now > most && !s.maxActiveReads.CompareAndSwap(most, now); {
		most = s.maxActiveReads.Load()
	}
	s.entered <- struct{}{}
	<-s.finish
	s.activeReads.Add(-1)
}

func (s *slowHistories) States(context.Context, runtime.HistoryQuery) ([]runtime.Snapshot, bool, error) {
	s.waitForFinish()
	return nil, false, nil
}

// However many calls ask for histories, few of them are in memory at a time; the
// other calls wait, or are cancelled.
func TestFewCallsReadHistoriesAtATime(t *testing.T) {
	const calls = 40
	e := &slowHistories{entered: make(chan struct{}, calls), finish: make(chan struct{})}
	s := &threadService{service: &service{
		engine: e, maxMessageBytes: 1 << 20,
		readSlots: make(chan struct{}, maxStateReads),
	}}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() { _, _ = s.ListCheckpoints(t.Context(), &graphdv1.ListCheckpointsRequest{ThreadId: "t"}) })
	}
	for range maxStateReads {
		<-e.entered
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{ThreadId: "t"})
	require.ErrorIs(t, err, context.Canceled)
	close(e.finish)
	all.Wait()
	require.Len(t, e.entered, calls-maxStateReads, "every call had its turn")
	require.EqualValues(t, maxStateReads, e.maxActiveReads.Load())
}
