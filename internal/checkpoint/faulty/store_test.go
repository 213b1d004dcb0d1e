package faulty_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
)

func newChange(expect uint64) *checkpoint.Change {
	return &checkpoint.Change{Thread: "t", Expect: expect, Op: string(rune('a' + expect)), Head: checkpoint.Head{Thread: "t"}}
}

func requireFault(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.ErrorIs(t, err, faulty.ErrInjected)
}

// storeWithGraphs is a store that breaks nothing, with the graphs beside it.
type storeWithGraphs struct {
	*faulty.Store
	checkpoint.Graphs
	checkpoint.Secrets
}

func TestWithoutPlanItIsTheStore(t *testing.T) {
	checkpointtest.Run(t, func(_ *testing.T, now func() time.Time) checkpointtest.Store {
		m := memory.New(memory.Options{Now: now, Tombstones: checkpointtest.Tombstones})
		return storeWithGraphs{faulty.New(m, faulty.Plan{}), m, m}
	})
}

func TestBeforeDoesNothing(t *testing.T) {
	s := faulty.New(memory.New(memory.Options{}), faulty.Plan{At: 2, Mode: faulty.FailBefore})
	_, err := s.Apply(t.Context(), newChange(0))
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), newChange(1))
	requireFault(t, err)
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err, "one call is hit")
	require.EqualValues(t, 1, h.Revision)
	require.Equal(t, []faulty.Method{faulty.Apply, faulty.Apply, faulty.Head}, s.Calls())
	require.Equal(t, 1, s.Hits())
}

func TestAfterLosesTheAnswer(t *testing.T) {
	s := faulty.New(memory.New(memory.Options{}), faulty.Plan{At: 1, Mode: faulty.FailAfter})
	_, err := s.Apply(t.Context(), newChange(0))
	requireFault(t, err)
	r, err := s.Apply(t.Context(), newChange(0))
	require.NoError(t, err, "the same op is known")
	require.EqualValues(t, 1, r.Revision)
}

func TestAfterPassesARefusal(t *testing.T) {
	s := faulty.New(memory.New(memory.Options{}), faulty.Plan{At: 1, Mode: faulty.FailAfter})
	_, err := s.Apply(t.Context(), newChange(7))
	require.ErrorIs(t, err, checkpoint.ErrConflict)
}

func TestHangEndsWithTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty.New(memory.New(memory.Options{}), faulty.Plan{At: 1, Mode: faulty.HangForever})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begun := time.Now()
		_, _, err := s.Due(ctx, 1)
		requireFault(t, err)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(begun))
	})
}

func TestWhichCallsFail(t *testing.T) {
	for name, c := range map[string]struct {
		plan faulty.Plan
		want []bool // of Head, Runs, Head, Runs, Head
	}{
		"none":       {faulty.Plan{}, []bool{false, false, false, false, false}},
		"the second": {faulty.Plan{At: 2}, []bool{false, true, false, false, false}},
		"two":        {faulty.Plan{At: 2, For: 2}, []bool{false, true, true, false, false}},
		"the rest":   {faulty.Plan{At: 3, For: -1}, []bool{false, false, true, true, true}},
		"second Head": {
			faulty.Plan{At: 2, Only: []faulty.Method{faulty.Head}}, []bool{false, false, true, false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := faulty.New(memory.New(memory.Options{}), c.plan)
			for i, want := range c.want {
				var err error
				if i%2 == 0 {
					_, err = s.Head(t.Context(), "t")
				} else {
					_, err = s.Runs(t.Context(), "t", 0, 0)
				}
				if want {
					requireFault(t, err)
				} else {
					require.NotErrorIs(t, err, faulty.ErrInjected)
				}
			}
			s.StopFaults()
			_, err := s.Head(t.Context(), "t")
			require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
		})
	}
}
