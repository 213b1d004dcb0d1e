package redis_test

import (
	"errors"
	"regexp"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// TestFailover loses the master between two changes. What had reached the
// replica is there, and the thread goes on from it.
func TestFailover(t *testing.T) {
	group := redistest.StartSentinel(t)
	s := openStore(t, group.URL())
	applySupersteps(t, s, "t", 1, 5)
	waitReplicated(t, group.Master.Client)
	require.NoError(t, group.Lose(t.Context()))

	deadline := time.Now().Add(2 * time.Minute)
	c := newSuperstep("t", 6, make([]payload.JSON, 6))
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
	applySupersteps(t, s, "t", 7, 9)
	cp, err := s.Checkpoint(t.Context(), "t", "", "")
	require.NoError(t, err)
	require.Len(t, cp.Channels[1].List.Items, 9)
}

// A replica that was cut off for longer than Sentinel's own patience allows is made the
// master all the same: how long a test takes until it kills the master does not matter.
func TestFailoverToAReplicaThatWasCutOff(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	s := openStore(t, group.URL())
	applySupersteps(t, s, "t", 1, 2)
	waitReplicated(t, group.Master.Client)
	require.NoError(t, group.DisconnectReplica(t.Context()))
	cutOff := regexp.MustCompile(`master_link_down_since_seconds:(\d+)`)
	require.Eventually(t, func() bool {
		info, err := group.Replica.Client.Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		found := cutOff.FindStringSubmatch(info)
		return len(found) == 2 && len(found[1]) > 1 // 10 s or more
	}, time.Minute, 100*time.Millisecond)
	require.NoError(t, group.Lose(t.Context()))
	require.Eventually(t, func() bool {
		h, err := s.Head(t.Context(), "t")
		return err == nil && h.Revision == 2
	}, time.Minute, 10*time.Millisecond)
}

var (
	written  = regexp.MustCompile(`master_repl_offset:(\d+)`)
	received = regexp.MustCompile(`slave0:.*offset=(\d+)`)
)

// waitReplicated waits until the replica of a master has what the master has now.
// WAIT would not do: it speaks of what its own connection has written.
func waitReplicated(t *testing.T, master *goredis.Client) {
	t.Helper()
	offset := func(of *regexp.Regexp) int {
		info, err := master.Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		found := of.FindStringSubmatch(info)
		require.NotNil(t, found, info)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	want := offset(written)
	require.Eventually(t, func() bool { return offset(received) >= want }, time.Minute, 10*time.Millisecond)
}
