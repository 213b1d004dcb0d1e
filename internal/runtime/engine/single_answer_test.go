package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// meanwhileStore lets something happen before the next question is read by its id.
type meanwhileStore struct {
	checkpoint.Store

	meanwhile atomic.Pointer[func()]
}

func (s *meanwhileStore) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if happen := s.meanwhile.Swap(nil); happen != nil {
		(*happen)()
	}
	return s.Store.Interrupt(ctx, thread, id)
}

// TestOneOfTwoSingleAnswersCounts: an answer that names no question fits the one that is open.
// When the same answer is given meanwhile, none is open.
func TestOneOfTwoSingleAnswersCounts(t *testing.T) {
	store := &meanwhileStore{Store: memory.New(memory.Options{})}
	f := newFixtureOn(t, store, engine.Options{RecentViewBytes: -1}, askingNodes(), chainSpec("g", channelsLog, "first"))
	require.Equal(t, checkpoint.RunInterrupted, f.runToStop("t", "g", `{"log":[]}`).State)
	answer := func() error {
		_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", Single: &runtime.Response{Value: `"yes"`}})
		return err
	}
	var first error
	other := func() { first = answer() }
	store.meanwhile.Store(&other)
	require.ErrorContains(t, answer(), "THREAD_NOT_INTERRUPTED")
	require.NoError(t, first)
}
