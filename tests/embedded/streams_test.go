package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// A reader that falls behind gets the pieces of a message joined, and lacks none of its text.
func TestASlowReaderOfAMessage(t *testing.T) {
	const sent = 20_000
	ended := make(chan struct{})
	var want strings.Builder
	for i := range sent {
		fmt.Fprintf(&want, "%d ", i)
	}
	g := graph.New("talks").Channel("n").
		Node("talk", func(ctx context.Context, _ graph.State) (any, error) {
			for i := range sent {
				piece := map[string]any{"type": "AIMessageChunk", "id": "m", "content": fmt.Sprintf("%d ", i)}
				if err := graph.EmitMessage(ctx, piece); err != nil {
					return nil, err
				}
			}
			return map[string]any{"n": sent}, nil
		}).
		Node("end", func(context.Context, graph.State) (any, error) {
			close(ended)
			return nil, nil
		}).
		Chain(graph.Start, "talk", "end", graph.End)
	p := open(t, graphd.Memory(), g)
	var got strings.Builder
	isFirst, messages := true, 0
	for e, err := range p.Stream(t.Context(), client.Run{Graph: "talks", Thread: "t", Input: map[string]any{}}) {
		require.NoError(t, err)
		if isFirst {
			isFirst = false
			<-ended // the run has no more to do
		}
		require.Nil(t, e.GetGap())
		if e.GetMessage() != nil {
			var piece struct{ Content string }
			require.NoError(t, json.Unmarshal([]byte(e.GetMessage().GetValue().GetJson()), &piece))
			got.WriteString(piece.Content)
			messages++
		}
	}
	require.Equal(t, want.String(), got.String())
	require.Less(t, messages, sent)
}

// A reader that falls behind is told where events are missing, and its run does not wait for it. What
// is kept in the log is never missing.
func TestASlowReader(t *testing.T) {
	const sent = 20_000
	ended := make(chan struct{})
	filler := strings.Repeat("x", 200)
	g := graph.New("talks").Channel("n").
		Node("talk", func(ctx context.Context, _ graph.State) (any, error) {
			for i := range sent {
				if err := graph.Emit(ctx, "part", map[string]any{"n": i, "filler": filler}); err != nil {
					return nil, err
				}
			}
			return map[string]any{"n": sent}, graph.Emit(ctx, "last", sent, graph.Durable())
		}).
		Node("end", func(context.Context, graph.State) (any, error) {
			close(ended)
			return nil, nil
		}).
		Chain(graph.Start, "talk", "end", graph.End)
	p := open(t, graphd.Memory(), g)
	next, told, gaps, hasLast := 0, true, 0, false
	isFirst := true
	for e, err := range p.Stream(t.Context(), client.Run{Graph: "talks", Thread: "t", Input: map[string]any{}}) {
		require.NoError(t, err)
		if isFirst {
			isFirst = false
			<-ended // the run has no more to do
		}
		switch {
		case e.GetGap() != nil:
			require.False(t, e.GetGap().GetDurableLost())
			told = true
			gaps++
		case e.GetCustom().GetName() == "last":
			hasLast = true
		case e.GetCustom() != nil:
			var part struct{ N int }
			require.NoError(t, json.Unmarshal([]byte(e.GetCustom().GetValue().GetJson()), &part))
			require.True(t, told || part.N == next, "%d comes after %d, and nothing tells of a gap", part.N, next-1)
			next, told = part.N+1, false
		case e.GetEnd() != nil:
			require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, sent), e.GetEnd().GetRun().GetOutput().GetJson())
		}
	}
	require.True(t, told || next == sent, "the events end with %d, and nothing tells of a gap", next-1)
	require.Positive(t, gaps, "the reader has lost nothing, so the test says nothing")
	require.True(t, hasLast, "a durable event is missing")
}
