package graphd_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

type order struct {
	Product string   `json:"product"`
	Answer  string   `json:"answer"`
	Log     []string `json:"log,omitempty" graph:"append"`
}

func newOrders() *graph.Builder {
	return graph.New("orders").State(order{}).
		Node("receive", graph.Typed(func(context.Context, order) (any, error) {
			return map[string]any{"log": []string{"received"}}, nil
		})).
		Node("pay", graph.Typed(func(ctx context.Context, o order) (any, error) {
			answer, err := graph.Ask[string](ctx, map[string]any{"pay for": o.Product})
			return map[string]any{"answer": answer, "log": []string{"paid"}}, err
		})).
		Chain(graph.Start, "receive", "pay", graph.End)
}

func TestAnEngineAsksAndGoesOnInAnotherOne(t *testing.T) {
	ctx := t.Context()
	store := graphd.SQLite(filepath.Join(t.TempDir(), "app.db"))
	e, err := graphd.Open(ctx, store, newOrders())
	require.NoError(t, err)
	o, err := e.Invoke(ctx, client.Run{Graph: "orders", Thread: "t1", Input: order{Product: "tea"}})
	require.NoError(t, err)
	require.True(t, o.Waits())
	require.JSONEq(t, `{"pay for":"tea"}`, o.Questions[0].GetValue().GetJson())
	require.NoError(t, e.Close(context.WithoutCancel(ctx)))

	e, err = graphd.Open(ctx, store, newOrders())
	require.NoError(t, err)
	o, err = e.Resume(ctx, "t1", client.Answer{Value: "yes"})
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, o.Run.GetState(), o.Run.GetFailure())
	got, err := client.Decode[order](o.Run.GetOutput())
	require.NoError(t, err)
	require.Equal(t, order{Product: "tea", Answer: "yes", Log: []string{"received", "paid"}}, got)
	_, err = e.Resume(ctx, "t1", client.Answer{Question: o.Run.GetRunId(), Value: "no"})
	require.ErrorIs(t, err, client.InterruptNotFound)
	require.NoError(t, e.Close(context.WithoutCancel(ctx)))
}

// An error handler is told which attempt has failed: the last one.
func TestErrorHandlersKnowTheAttempt(t *testing.T) {
	ctx := t.Context()
	broken := errors.New("broken")
	handled := graph.New("handled").Channel("attempt").
		Node("try", func(context.Context, graph.State) (any, error) { return nil, broken },
			graph.Retries(graph.Retry{MaxAttempts: 3, InitialInterval: time.Millisecond}), graph.OnError("handle")).
		Node("handle", func(ctx context.Context, _ graph.State) (any, error) {
			return map[string]any{"attempt": graph.Failed(ctx).Attempt}, nil
		}).
		Chain(graph.Start, "try", graph.End)
	e, err := graphd.Open(ctx, graphd.Memory(), handled)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.WithoutCancel(ctx))) }()
	o, err := e.Invoke(ctx, client.Run{Graph: "handled", Thread: "t1", Input: map[string]any{}})
	require.NoError(t, err)
	require.JSONEq(t, `{"attempt":3}`, o.Run.GetOutput().GetJson())
}

// A node that waits for another run of its own engine does not fail when that is closed: both runs go
// on when the store is opened again.
func TestNodesThatCallTheirEngineGoOnAfterClose(t *testing.T) {
	ctx := t.Context()
	store := graphd.SQLite(filepath.Join(t.TempDir(), "app.db"))
	engines := make(chan *graphd.Engine, 1)
	begun := make(chan struct{}, 1)
	outer := graph.New("outer").Channel("inner").
		Node("call", func(ctx context.Context, _ graph.State) (any, error) {
			e := <-engines
			engines <- e
			o, err := e.Invoke(ctx, client.Run{Graph: "inner", Thread: "inner", RequestID: "once", Input: map[string]any{}})
			if err != nil {
				return nil, err
			}
			return map[string]any{"inner": o.Run.GetOutput().GetJson()}, nil
		}).
		Chain(graph.Start, "call", graph.End)
	var isAgain atomic.Bool
	inner := graph.New("inner").Channel("n").
		Node("wait", func(ctx context.Context, _ graph.State) (any, error) {
			if !isAgain.Load() {
				begun <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return map[string]any{"n": 1}, nil
		}).
		Chain(graph.Start, "wait", graph.End)
	e, err := graphd.OpenWith(ctx, store, graphd.Options{Args: []string{"--drain-timeout=1s"}}, outer, inner)
	require.NoError(t, err)
	engines <- e
	_, err = e.Start(ctx, client.Run{Graph: "outer", Thread: "outer", Input: map[string]any{}})
	require.NoError(t, err)
	<-begun
	require.NoError(t, e.Close(context.WithoutCancel(ctx)))

	isAgain.Store(true)
	<-engines
	e, err = graphd.Open(ctx, store, outer, inner)
	require.NoError(t, err)
	engines <- e
	o, err := e.Wait(ctx, "outer", "")
	require.NoError(t, err)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, o.Run.GetState(), o.Run.GetFailure())
	require.JSONEq(t, `{"inner":"{\"n\":1}"}`, o.Run.GetOutput().GetJson())
	require.NoError(t, e.Close(context.WithoutCancel(ctx)))
}

func TestReducersAndRoutesInGo(t *testing.T) {
	ctx := t.Context()
	count := graph.New("count").
		Channel("n", graph.ReduceBy(func(a, b int) (int, error) { return a + b, nil })).
		Node("add", func(context.Context, graph.State) (any, error) { return json.RawMessage(`{"n":2}`), nil }).
		Edge(graph.Start, "add").
		Route("add", func(_ context.Context, s graph.State) (any, error) {
			var n int
			err := s.Decode("n", &n)
			if n < 6 {
				return "add", err
			}
			return graph.End, err
		}, "add", graph.End)
	e, err := graphd.Open(ctx, graphd.Memory(), count)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.WithoutCancel(ctx))) }()
	var updates int
	for event, err := range e.Stream(ctx, client.Run{Graph: "count", Thread: "t1", Input: map[string]any{}}) {
		require.NoError(t, err)
		if event.GetUpdate() != nil {
			updates++
		}
		if end := event.GetEnd(); end != nil {
			require.JSONEq(t, `{"n":6}`, end.GetRun().GetOutput().GetJson())
		}
	}
	require.Equal(t, 3, updates)
}
