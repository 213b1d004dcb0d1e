package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// A worker that has lost its task and the next one record the same memo at the
// same time. Both go on with the value that replays will see.
func TestOfMemosRecordedTogetherOneStays(t *testing.T) {
	var mu sync.Mutex
	used := make(map[payload.JSON]bool)
	code := map[string]nodeFunc{"a": func(ctx context.Context, c *nodeCall) pregel.Result {
		if len(c.Journal.Memos) > 0 {
			mu.Lock()
			defer mu.Unlock()
			used[c.Journal.Memos[0].Value] = true
			return pregel.Result{Update: `{"x":2}`}
		}
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				m := checkpoint.Memo{Key: "k", Value: payload.JSON(fmt.Sprint(i))}
				value, _, err := c.Effects.RecordMemo(ctx, m)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					used[value] = true
				}
			})
		}
		all.Wait()
		c.askNext(`"go on?"`)
		return failedResult("it does not come here")
	}}
	w := newFixture(t, code, chainSpec("g", []graph.ChannelSpec{{Name: "x"}}, "a"))
	for i := range 20 {
		thread := fmt.Sprint("t", i)
		clear(used)
		w.runToStop(thread, "g", `{"x":1}`)
		require.Equal(t, checkpoint.RunSucceeded, w.answerSingle(thread, `1`).State)
		require.Len(t, used, 1)
	}
}

// What a task may record is bounded, over its attempts too; what is recorded
// already is given out all the same. The memos of a superstep under way count in
// what the live runs hold.
func TestMemosOfATaskAreBounded(t *testing.T) {
	const most = 10_000
	memo := func(n int) checkpoint.Memo {
		return checkpoint.Memo{Key: fmt.Sprint("k", n), Value: payload.Quote(strings.Repeat("x", 1000))}
	}
	var w *fixture
	var before int64
	small := checkpoint.Memo{Key: "small", Value: "1"}
	record := func(c *nodeCall, from int) error {
		for n := from; ; n++ {
			if _, _, err := c.Effects.RecordMemo(t.Context(), memo(n)); err != nil {
				return err
			}
		}
	}
	code := map[string]nodeFunc{"a": func(_ context.Context, c *nodeCall) pregel.Result {
		one := memo(0)
		all := int(most / superstep.MemoBytes(&one))
		if len(c.Journal.Memos) == 0 {
			before, _ = engine.LiveBytes(w.engine)
		} else {
			require.Len(t, c.Journal.Memos, all)
		}
		refused := record(c, 0)
		var problem *runtime.Error
		require.ErrorAs(t, refused, &problem)
		require.Equal(t, runtime.ReasonPayloadTooLarge, problem.Reason)
		require.Equal(t, "max-task-memo-bytes", problem.Meta["limit"])
		require.Equal(t, fmt.Sprint(most), problem.Meta["most"])
		require.Equal(t, fmt.Sprint(int64(all+1)*superstep.MemoBytes(&one)), problem.Meta["need"])
		if len(c.Journal.Memos) == 0 {
			held, _ := engine.LiveBytes(w.engine)
			require.Equal(t, int64(all)*superstep.MemoBytes(&one), held-before)
		}
		known, existed, err := c.Effects.RecordMemo(t.Context(), checkpoint.Memo{Key: "k1", Value: "2"})
		require.NoError(t, err)
		require.True(t, existed)
		require.Equal(t, one.Value, known)
		c.askNext(`"go on?"`)
		_, _, err = c.Effects.RecordMemo(t.Context(), small)
		require.NoError(t, err, "there is room for less")
		return pregel.Result{Update: `{"x":2}`}
	}}
	w = newFixtureOn(t, memory.New(memory.Options{}), engine.Options{MaxTaskMemoBytes: most}, code, chainSpec("g", []graph.ChannelSpec{{Name: "x"}}, "a"))
	w.runToStop("t", "g", `{"x":1}`)
	holdsNothing := func() bool { // soon after the run has told that it stopped
		held, _ := engine.LiveBytes(w.engine)
		return held == 0
	}
	require.Eventually(t, holdsNothing, time.Minute, time.Millisecond, "what waits holds nothing")
	require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", `1`).State)
	require.Eventually(t, holdsNothing, time.Minute, time.Millisecond)
}

// A memo is found by its place: a task that has many records the next one as
// quickly.
func BenchmarkRecordMemo(b *testing.B) {
	for _, many := range []int{10, 10_000} {
		b.Run(fmt.Sprint(many), func(b *testing.B) {
			code := map[string]nodeFunc{"a": func(_ context.Context, c *nodeCall) pregel.Result {
				for n := range many {
					_, _, _ = c.Effects.RecordMemo(b.Context(), checkpoint.Memo{Key: fmt.Sprint(n), Value: "1"})
				}
				for b.Loop() {
					_, _, _ = c.Effects.RecordMemo(b.Context(), checkpoint.Memo{Key: fmt.Sprint(many - 1), Value: "1"})
				}
				return pregel.Result{Update: `{"x":2}`}
			}}
			w := newFixture(b, code, chainSpec("g", []graph.ChannelSpec{{Name: "x"}}, "a"))
			w.runToStop("t", "g", `{"x":1}`)
		})
	}
}
