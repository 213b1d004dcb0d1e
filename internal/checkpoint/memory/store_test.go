package memory_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
)

func TestContract(t *testing.T) {
	checkpointtest.Run(t, func(_ *testing.T, now func() time.Time) checkpointtest.Store {
		return memory.New(memory.Options{Now: now, Tombstones: checkpointtest.Tombstones})
	})
}

// TestQuestionsOfAThread finds the interrupts of one thread as a look at those of
// all threads would, without looking at all of them.
func TestQuestionsOfAThread(t *testing.T) {
	s := memory.New(memory.Options{})
	const threads = 3
	heads := make([]checkpoint.Head, threads)
	ask := func(thread, n int, state checkpoint.InterruptState) {
		h := &heads[thread]
		h.Thread, h.LogID, h.State = fmt.Sprint("t", thread), "log", checkpoint.ThreadInterrupted
		receipt, err := s.Apply(t.Context(), &checkpoint.Change{
			Thread: h.Thread, Expect: h.Revision, Op: fmt.Sprint(thread, n, state), Head: *h,
			Interrupts: []checkpoint.Interrupt{{
				ID: fmt.Sprint("q", n), Thread: h.Thread, State: state, Created: time.Unix(int64(100-n), 0),
			}},
		})
		require.NoError(t, err)
		h.Revision = receipt.Revision
	}
	for n := range 6 {
		for thread := range threads {
			ask(thread, n, checkpoint.InterruptOpen)
		}
	}
	ask(1, 2, checkpoint.InterruptAnswered)
	ask(1, 0, checkpoint.InterruptConsumed)
	for _, q := range []checkpoint.InterruptQuery{
		{},
		{ByChange: true},
		{ByChange: true, After: checkpoint.InterruptPosition{Change: 9}},
		{ByChange: true, After: checkpoint.InterruptPosition{Change: 9}, Limit: 2},
		{Limit: 2},
		{After: checkpoint.InterruptPosition{Created: time.Unix(97, 0), Thread: "t1", ID: "q3"}},
		{States: []checkpoint.InterruptState{checkpoint.InterruptOpen}, Limit: 3},
	} {
		all := q
		all.Limit = 0
		want, err := s.Interrupts(t.Context(), all)
		require.NoError(t, err)
		want = slices.DeleteFunc(want, func(in checkpoint.Interrupt) bool { return in.Thread != "t1" })
		require.NotEmpty(t, want)
		q.Thread = "t1"
		got, err := s.Interrupts(t.Context(), q)
		require.NoError(t, err)
		if q.Limit > 0 {
			want = want[:min(q.Limit, len(want))]
		}
		require.Equal(t, want, got, "%+v", q)
	}
	none, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Thread: "nobody"})
	require.NoError(t, err)
	require.Empty(t, none)
}
