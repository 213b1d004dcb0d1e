package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// What an attempt left behind, like a thread of a worker that goes on, sends no
// event and records nothing.
func TestEndedAttemptsHaveNoEffects(t *testing.T) {
	var left runtime.Effects
	code := map[string]nodeFunc{
		"a": func(_ context.Context, c *nodeCall) pregel.Result {
			left = c.Effects
			left.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Name: "alive", Value: `1`, Durable: true})
			return pregel.Result{Update: `{"x":2}`}
		},
		"b": func(ctx context.Context, c *nodeCall) pregel.Result {
			left.EmitEvent(runtime.Emission{Kind: checkpoint.EventCustom, Name: "ghost", Value: `1`, Durable: true})
			if _, _, err := left.RecordMemo(ctx, checkpoint.Memo{Key: "ghost", Value: `1`}); err == nil {
				return failedResult("a memo of a task that has ended was recorded")
			}
			c.askNext(`"go on?"`)
			return pregel.Result{Update: `{"x":3}`}
		},
	}
	w := newFixture(t, code, chainSpec("g", []graph.ChannelSpec{{Name: "x"}}, "a", "b"))
	require.Equal(t, checkpoint.RunInterrupted, w.runToStop("t", "g", `{"x":1}`).State)
	require.Equal(t, checkpoint.RunSucceeded, w.answerSingle("t", `1`).State)
	events, err := w.store.Events(t.Context(), "t", 0, 0)
	require.NoError(t, err)
	var said []string
	for _, e := range events {
		if e.Kind == checkpoint.EventCustom {
			said = append(said, e.Name)
		}
	}
	require.Equal(t, []string{"alive"}, said)
}
