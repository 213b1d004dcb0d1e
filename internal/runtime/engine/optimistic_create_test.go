package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
)

// TestRunsThatCreateTheirThreads begins runs in threads that callers name: after
// some new ones threads are no longer looked up, and one that is there is found all
// the same.
func TestRunsThatCreateTheirThreads(t *testing.T) {
	s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t, "--appendfsync", "no").URL("partitions=1")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	store := &readCountingStore{Store: s}
	w := newFixtureOn(t, store, engine.Options{ScanInterval: time.Hour, PollInterval: time.Hour}, map[string]nodeFunc{"a": logNode},
		withExpressions(chainSpec("g", channelsLog, "a"), "a"))
	start := func(thread, request string) (checkpoint.Run, error) {
		st, err := w.engine.Start(t.Context(), runtime.StartRequest{
			Thread: thread, CreateThread: true, Graph: "g", Request: newInput(thread), RequestID: request, Digest: request,
		})
		return st.Run, err
	}
	began := func(thread string, looks int64) {
		t.Helper()
		store.takeCounts()
		_, err := start(thread, "")
		require.NoError(t, err)
		require.Equal(t, looks, store.takeCounts()[0], thread)
	}
	for n := range 8 {
		began(fmt.Sprint("new", n), 1)
	}
	began("newer", 0)
	old, err := start("newest", "request")
	require.NoError(t, err)
	again, err := start("newest", "request") // is there, and was asked for
	require.NoError(t, err)
	require.Equal(t, old.ID, again.ID)

	_, err = w.engine.Start(t.Context(), runtime.StartRequest{
		Thread: "newest", CreateThread: true, Graph: "other", Request: newInput("x"),
	})
	require.ErrorContains(t, err, "not \"other\"", "what is there is looked at before a run is refused")
	began("newest", 1)
	head, err := w.engine.Thread(t.Context(), "newest")
	require.NoError(t, err)
	require.Len(t, w.listCheckpoints("newest", ""), 6, "input, start and node of two runs")
	require.Equal(t, checkpoint.ThreadIdle, head.State)
	began("yet another", 1) // as long as most exist, every call looks
}
