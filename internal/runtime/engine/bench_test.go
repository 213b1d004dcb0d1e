package engine_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// addOneNode adds one to an integer.
func addOneNode(_ context.Context, c *nodeCall) pregel.Result {
	v, _ := c.State.Lookup("n")
	n, _ := strconv.Atoi(string(v))
	return pregel.Result{Update: payload.JSON(`{"n":` + strconv.Itoa(n+1) + `}`)}
}

const chainLength = 10

func newChainFixture(b *testing.B) *fixture {
	b.Helper()
	code := make(map[string]nodeFunc, chainLength)
	names := make([]string, chainLength)
	for i := range names {
		names[i] = fmt.Sprintf("n%02d", i)
		code[names[i]] = addOneNode
	}
	return newFixture(b, code, chainSpec("chain", []graph.ChannelSpec{{Name: "n"}}, names...))
}

// runChain runs the chain once on a thread and waits for its end.
func runChain(b *testing.B, w *fixture, thread string) {
	b.Helper()
	s, err := w.engine.Start(b.Context(), runtime.StartRequest{
		Thread: thread, CreateThread: true, Graph: "chain",
		Request: checkpoint.RunRequest{Input: `{"n":0}`},
	})
	require.NoError(b, err)
	r, err := w.engine.WaitRun(b.Context(), thread, s.Run.ID)
	require.NoError(b, err)
	if r.State != checkpoint.RunSucceeded {
		b.Fatal(r.State, r.Failure)
	}
}

// reportPerStep reports the time per superstep: what the whole run costs, admission
// and end included, over its supersteps, the start node's and one a link.
func reportPerStep(b *testing.B, runs int) {
	b.Helper()
	steps := float64(runs * (chainLength + 1))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/steps, "ns/superstep")
}

// BenchmarkChain runs a chain of ten nodes on the memory store, a thread per run.
// Threads are deleted as it goes, or it would measure the growth of the heap.
func BenchmarkChain(b *testing.B) {
	w := newChainFixture(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		runChainAndDelete(b, w, "t"+strconv.Itoa(i))
	}
	reportPerStep(b, b.N)
}

// runChainAndDelete makes a thread, runs the chain on it, and deletes it.
func runChainAndDelete(b *testing.B, w *fixture, thread string) {
	b.Helper()
	runChain(b, w, thread)
	require.NoError(b, w.engine.DeleteThread(b.Context(), thread, 0, true))
	w.nodes.takeEntered()
}

// BenchmarkLongThread measures a run on a thread with a long history, beside
// one on a thread with none: the two must cost the same.
func BenchmarkLongThread(b *testing.B) {
	for _, steps := range []int{0, 2000} {
		b.Run(fmt.Sprintf("after=%d", steps), func(b *testing.B) {
			w := newChainFixture(b)
			for range steps / chainLength {
				runChain(b, w, "long")
			}
			w.nodes.takeEntered()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				runChain(b, w, "long")
			}
			reportPerStep(b, b.N)
		})
	}
}

// BenchmarkManyThreads measures a run beside many idle threads.
func BenchmarkManyThreads(b *testing.B) {
	for _, threads := range []int{0, 2000} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			w := newChainFixture(b)
			for i := range threads {
				runChain(b, w, "idle"+strconv.Itoa(i))
			}
			w.nodes.takeEntered()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				runChainAndDelete(b, w, "t"+strconv.Itoa(i))
			}
			reportPerStep(b, b.N)
		})
	}
}

// BenchmarkRead reads the newest state of a thread, an older one, and a page of
// its history.
func BenchmarkRead(b *testing.B) {
	w := newChainFixture(b)
	for range 20 {
		runChain(b, w, "read")
	}
	history, _, err := w.engine.States(b.Context(), runtime.HistoryQuery{Thread: "read", Limit: 21})
	require.NoError(b, err)
	older := history[10].Checkpoint.ID
	b.Run("newest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := w.engine.State(b.Context(), runtime.StateRequest{Thread: "read"})
			require.NoError(b, err)
		}
	})
	b.Run("newest in a call", func(b *testing.B) {
		b.ReportAllocs()
		var memory runtime.CallMemory
		for b.Loop() {
			_, err := w.engine.State(b.Context(), runtime.StateRequest{Thread: "read", Memory: &memory})
			memory.Release()
			require.NoError(b, err)
		}
	})
	b.Run("older", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := w.engine.State(b.Context(), runtime.StateRequest{Thread: "read", Checkpoint: older})
			require.NoError(b, err)
		}
	})
	b.Run("page", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, err := w.engine.States(b.Context(), runtime.HistoryQuery{Thread: "read", Limit: 21})
			require.NoError(b, err)
		}
	})
}
