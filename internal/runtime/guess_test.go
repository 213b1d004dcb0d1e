package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// TestRunsThatCreateTheirThreads begins runs in threads that callers name: after
// some new ones nobody looks any more whether there is such a thread, and one
// that is there is found all the same.
func TestRunsThatCreateTheirThreads(t *testing.T) {
	s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t, "--appendfsync", "no").URL("partitions=1")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	store := &asked{Store: s}
	w := newWorldOn(t, store, runtime.Options{Sweep: time.Hour, Poll: time.Hour}, map[string]node{"a": quickly},
		computed(chain("g", channelsLog, "a"), "a"))
	start := func(thread, request string) (checkpoint.Run, error) {
		st, err := w.engine.Start(t.Context(), runtime.StartRequest{
			Thread: thread, CreateThread: true, Graph: "g", Request: input(thread), RequestID: request, Digest: request,
		})
		return st.Run, err
	}
	began := func(thread string, looks int64) {
		t.Helper()
		store.counted()
		_, err := start(thread, "")
		require.NoError(t, err)
		require.Equal(t, looks, store.counted()[0], thread)
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
		Thread: "newest", CreateThread: true, Graph: "other", Request: input("x"),
	})
	require.ErrorContains(t, err, "not \"other\"", "what is there is looked at before a run is refused")
	began("newest", 1)
	head, err := w.engine.Thread(t.Context(), "newest")
	require.NoError(t, err)
	require.Len(t, w.history("newest", ""), 6, "input, start and node of two runs")
	require.Equal(t, checkpoint.ThreadIdle, head.State)
	began("yet another", 1) // as long as most are there, everybody looks
}
