package engine_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// growingGraph returns a graph whose node appends a kilobyte until there are n of them,
// and calls each before it does, with the number of those that are there.
func growingGraph(n int, each ...func(said int)) (map[string]nodeFunc, *graph.Spec) {
	line := payload.Quote(strings.Repeat("x", 1022))
	say := func(_ context.Context, c *nodeCall) pregel.Result {
		for _, f := range each {
			f(parseNumber(c.stateText("n")))
		}
		return pregel.Result{Update: payload.JSON(`{"log":[` + string(line) + `],"n":1}`)}
	}
	return map[string]nodeFunc{"say": say}, &graph.Spec{
		Name: "talk", Channels: channelsLog,
		Nodes: []graph.NodeSpec{functionNode("say")}, Edges: []graph.EdgeSpec{newEdge(graph.Start, "say")},
		Branches: []graph.BranchSpec{{From: "say", Cases: []graph.CaseSpec{
			{When: fmt.Sprintf("state.n %% %d != 0", n), To: []string{"say"}}, {To: []string{graph.End}},
		}}},
	}
}

func openRedis(tb testing.TB, server *redistest.Server) *redis.Store {
	tb.Helper()
	s, err := redis.Open(tb.Context(), redis.Options{URL: server.URL("")})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// storedBytes returns the memory that Redis uses for the keys of thread t.
func storedBytes(tb testing.TB, server *redistest.Server) (total int64) {
	tb.Helper()
	keys, err := server.Client.Keys(tb.Context(), "graphd{*}:?:t").Result()
	require.NoError(tb, err)
	require.NotEmpty(tb, keys)
	for _, key := range keys {
		n, err := server.Client.MemoryUsage(tb.Context(), key, 0).Result() // 0 = look at every element
		require.NoError(tb, err)
		total += n
	}
	return total
}

// receivedBytes returns how many bytes the server has been sent so far.
func receivedBytes(tb testing.TB, server *redistest.Server) int {
	tb.Helper()
	info, err := server.Client.Info(tb.Context(), "stats").Result()
	require.NoError(tb, err)
	_, rest, _ := strings.Cut(info, "total_net_input_bytes:")
	count, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(count)
	require.NoError(tb, err)
	return n
}

// Five hundred kilobytes of state take less than half as much again, all that is
// kept beside the state included, and the last one costs what the
// first one did.
func TestFootprint(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	sent := map[int]int{}
	code, spec := growingGraph(500, func(said int) {
		switch said {
		case 10, 110, 390, 490:
			sent[said] = receivedBytes(t, server)
		}
	})
	w := newFixtureOn(t, openRedis(t, server), engine.Options{
		KeepCheckpoints: engine.MemoryStoreCheckpoints, PruneDelay: time.Millisecond, ScanInterval: 20 * time.Millisecond,
	}, code, spec)
	r := w.runToStop("t", "talk", `{}`)
	require.Equal(t, checkpoint.RunSucceeded, r.State)
	require.Greater(t, len(r.Output), 500*1024)
	few := engine.MemoryStoreCheckpoints + engine.MemoryStoreCheckpoints/4
	require.Eventually(t, func() bool { return len(w.listCheckpoints("t", "")) <= few }, time.Minute, 20*time.Millisecond,
		"once the thread has come to rest")
	require.GreaterOrEqual(t, len(w.listCheckpoints("t", "")), engine.MemoryStoreCheckpoints)
	require.Less(t, storedBytes(t, server), int64(750_000))
	again, err := w.engine.Run(t.Context(), nil, "t", "")
	require.NoError(t, err)
	require.Equal(t, r.Output, again.Output)
	early, late := sent[110]-sent[10], sent[490]-sent[390]
	// Scans are counted too, and there are more of them on a slow machine. A
	// step that sent its state again would send a hundred times as much.
	require.Less(t, late, 2*early, "what 100 steps send to the server")
	t.Logf("%d bytes stored; a step sends %d bytes, 380 steps later %d", storedBytes(t, server), early/100, late/100)
}

// A thread that waits for an answer with a kilobyte of state takes four more for
// all the rest: the kilobyte of input that its run, its first checkpoint and a
// channel have is kept once.
func TestFootprintOfAQuestion(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	code := map[string]nodeFunc{
		"a": func(context.Context, *nodeCall) pregel.Result { return pregel.Result{Update: `{"x":1}`} },
		"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			return pregel.Result{Update: payload.JSON(`{"answer":` + c.askNext(`"Go on?"`) + `}`)}
		},
	}
	w := newFixtureOn(t, openRedis(t, server), engine.Options{}, code,
		chainSpec("question", []graph.ChannelSpec{{Name: "x"}, {Name: "note"}, {Name: "answer"}}, "a", "ask"))
	noise := make([]byte, 768)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	r := w.runToStop("t", "question", `{"x":0,"note":"`+base64.StdEncoding.EncodeToString(noise)+`"}`)
	require.Equal(t, checkpoint.RunInterrupted, r.State)
	n := storedBytes(t, server)
	t.Logf("%d bytes stored", n)
	require.Less(t, n, int64(5_600), "the allocator of Redis gives a hundred more or less")
}

// BenchmarkAppend appends kilobytes to a list that holds some already: all
// supersteps must cost the same.
func BenchmarkAppend(b *testing.B) {
	stores := []struct {
		name string
		open func(b *testing.B) checkpoint.Store
	}{
		{"memory", func(*testing.B) checkpoint.Store { return memory.New(memory.Options{}) }},
		{"redis", func(b *testing.B) checkpoint.Store {
			b.Helper()
			return openRedis(b, redistest.Start(b, "--appendonly", "no"))
		}},
	}
	for _, s := range stores {
		for _, after := range []int{10, 500, 10_000} {
			b.Run(fmt.Sprintf("%s/after=%d", s.name, after), func(b *testing.B) {
				code, spec := growingGraph(after+b.N, func(said int) {
					switch said { // the end of the run, which shows the whole list, is not timed
					case after:
						b.ResetTimer()
					case after + b.N - 1:
						b.StopTimer()
					}
				})
				w := newFixtureOn(b, s.open(b), engine.Options{StepLimit: after + b.N + 2}, code, spec)
				w.runToStop("t", "talk", `{}`)
			})
		}
	}
}
