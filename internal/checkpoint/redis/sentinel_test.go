package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TestFailover loses the master between two changes. What had reached the
// replica is there, and the thread goes on from it.
func TestFailover(t *testing.T) {
	group := redistest.StartSentinel(t)
	s := open(t, group.URL())
	grow(t, s, "t", 1, 5)
	n, err := group.Master.Client.Wait(t.Context(), 1, 10*time.Second).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	group.Master.Kill()

	deadline := time.Now().Add(30 * time.Second)
	c := superstep("t", 6, make([]payload.JSON, 6))
	for {
		_, err := s.Apply(t.Context(), c)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
		require.False(t, errors.Is(err, checkpoint.ErrConflict) || time.Now().After(deadline), err)
	}
	h, err := s.Head(t.Context(), "t")
	require.NoError(t, err)
	require.EqualValues(t, 6, h.Revision)
	grow(t, s, "t", 7, 9)
	cp, err := s.Checkpoint(t.Context(), "t", "", "")
	require.NoError(t, err)
	require.Len(t, cp.Channels[1].List.Items, 9)
}
