package redis_test

import (
	"context"
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/payload"
)

// make test-cluster lets more happen to a cluster.
var (
	moves     = flag.Int("moves", 4, "how often a slot moves while it is written to")
	failovers = flag.Int("failovers", 1, "how many masters of a cluster die")
)

// A writer drives one thread on and knows how far it is.
type threadDriver struct {
	store       *redis.Store
	thread      string
	supersteps  uint64        // supersteps that were acknowledged
	unavailable int           // how often the store was away
	longest     time.Duration // the longest time that one superstep took
}

func (td *threadDriver) nextChange(n uint64) *checkpoint.Change {
	c := newSuperstep(td.thread, n, nil)
	c.Checkpoints[0].Channels = c.Checkpoints[0].Channels[:1]
	c.Checkpoints[0].Channels[0].Value = payload.JSON(strconv.FormatUint(n, 10))
	return c
}

// applyNext makes the next superstep, as often as it takes.
func (td *threadDriver) applyNext(t *testing.T) {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for {
		_, err := td.store.Apply(ctx, td.nextChange(td.supersteps+1))
		if err == nil {
			break
		}
		require.ErrorIs(t, err, checkpoint.ErrUnavailable)
		require.NotErrorIs(t, err, checkpoint.ErrConflict)
		require.NoError(t, ctx.Err(), "it does not come back: %v", err)
		td.unavailable++
	}
	td.supersteps++
	td.longest = max(td.longest, time.Since(begun))
}

// requireComplete compares the thread with what was acknowledged: nothing lacks, nothing
// is there twice.
func (td *threadDriver) requireComplete(t *testing.T) {
	t.Helper()
	h, err := td.store.Head(t.Context(), td.thread)
	require.NoError(t, err)
	require.Equal(t, td.supersteps, h.Revision)
	cp, err := td.store.Checkpoint(t.Context(), td.thread, "", "")
	require.NoError(t, err)
	require.Equal(t, payload.JSON(strconv.FormatUint(td.supersteps, 10)), cp.Channels[0].Value)
	events, err := td.store.Events(t.Context(), td.thread, 0, 0)
	require.NoError(t, err)
	require.Len(t, events, int(2*td.supersteps))
	for i, e := range events {
		require.EqualValues(t, i+1, e.Seq)
	}
}

// slotOfThread is where a thread lies.
func slotOfThread(t *testing.T, c *redistest.Cluster, thread string) int64 {
	t.Helper()
	for _, node := range c.Nodes {
		keys, err := node.Client.Keys(t.Context(), "graphd{*}:h:"+thread).Result()
		require.NoError(t, err)
		if len(keys) == 1 {
			return node.Client.ClusterKeySlot(t.Context(), keys[0]).Val()
		}
	}
	t.Fatalf("thread %s is on no node", thread)
	return 0
}

// TestClusterMovesASlot writes to a thread while its slot goes from node to
// node. The scripts are unknown where it comes to.
func TestClusterMovesASlot(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3)
	w := &threadDriver{store: openStore(t, c.Nodes[0].URL("")), thread: "t"}
	w.applyNext(t)
	slot := slotOfThread(t, c, "t")
	done := make(chan error, 1)
	go func() {
		for n := range *moves {
			at, err := c.SlotOwner(t.Context(), slot)
			if err == nil {
				to := c.Nodes[n%3]
				if to == at {
					to = c.Nodes[(n+1)%3]
				}
				err = c.MoveSlot(t.Context(), slot, to, 20*time.Millisecond)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var moved error
	for running := true; running; {
		select {
		case moved = <-done:
			running = false
		default:
			w.applyNext(t)
		}
	}
	require.NoError(t, moved)
	w.applyNext(t)
	w.requireComplete(t)
	t.Logf("%d supersteps over %d moves, away %d times, the longest took %v", w.supersteps, *moves, w.unavailable, w.longest)

	heads, err := w.store.Threads(t.Context(), checkpoint.ThreadQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, heads, 1)
}

// TestClusterLosesAMaster kills the node that has a thread. What had reached
// the replica is there, and the thread goes on from it.
func TestClusterLosesAMaster(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t, 3, "--cluster-node-timeout", "2000")
	w := &threadDriver{store: openStore(t, c.Nodes[0].URL("")), thread: "t"}
	w.applyNext(t)
	slot := slotOfThread(t, c, "t")
	for range *failovers {
		master, err := c.SlotOwner(t.Context(), slot)
		require.NoError(t, err)
		replica := c.AddReplica(master, "--cluster-node-timeout", "2000")
		for range 20 {
			w.applyNext(t)
		}
		waitReplicated(t, master.Client)
		c.FailOver(master, replica)
		for range 20 {
			w.applyNext(t)
		}
		w.requireComplete(t)
	}
	require.Positive(t, w.unavailable, "nothing was lost")
	t.Logf("%d masters lost, away %d times, the longest superstep took %v", *failovers, w.unavailable, w.longest)
}
