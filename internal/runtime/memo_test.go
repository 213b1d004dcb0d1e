package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// A worker that has lost its task and the next one record the same memo at the
// same time. Both go on with the value that replays will see.
func TestOfMemosRecordedTogetherOneStays(t *testing.T) {
	var mu sync.Mutex
	used := make(map[payload.JSON]bool)
	code := map[string]node{"a": func(ctx context.Context, c *call) pregel.Result {
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
				value, _, err := c.Effects.Remember(ctx, m)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					used[value] = true
				}
			})
		}
		all.Wait()
		c.ask(`"go on?"`)
		return fail("it does not come here")
	}}
	w := newWorld(t, code, chain("g", []graph.ChannelSpec{{Name: "x"}}, "a"))
	for i := range 20 {
		thread := fmt.Sprint("t", i)
		clear(used)
		w.run(thread, "g", `{"x":1}`)
		require.Equal(t, checkpoint.RunSucceeded, w.answer(thread, `1`).State)
		require.Len(t, used, 1)
	}
}
