package graphd_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
)

// engineCalls are calls of an engine in each form: those of the client, generated ones and streams.
func engineCalls() map[string]func(context.Context, *graphd.Engine) error {
	run := client.Run{Graph: "orders", Thread: "t1", Input: order{Product: "tea"}}
	return map[string]func(context.Context, *graphd.Engine) error{
		"start": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Start(ctx, run)
			return err
		},
		"invoke": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Invoke(ctx, run)
			return err
		},
		"wait": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Wait(ctx, "t1", "")
			return err
		},
		"resume": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Resume(ctx, "t1", client.Answer{Value: "yes"})
			return err
		},
		"stream": func(ctx context.Context, e *graphd.Engine) error {
			return readAll(e.Stream(ctx, run))
		},
		"stream of an answer": func(ctx context.Context, e *graphd.Engine) error {
			return readAll(e.StreamResume(ctx, "t1", client.Answer{Value: "yes"}))
		},
		"watch": func(ctx context.Context, e *graphd.Engine) error {
			return readAll(e.Watch(ctx, "t1", nil))
		},
		"inbox": func(ctx context.Context, e *graphd.Engine) error {
			return readAll(e.Inbox(ctx, ""))
		},
		"questions": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Questions(ctx, "t1")
			return err
		},
		"generated": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Threads().GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: "t1"})
			return err
		},
		"generated, over a connection": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Registry().ListGraphs(ctx, &graphdv1.ListGraphsRequest{}, grpc.WaitForReady(true), grpc.UseCompressor("gzip"))
			return err
		},
		"generated stream": func(ctx context.Context, e *graphd.Engine) error {
			_, err := e.Graphs().Watch(ctx, &graphdv1.WatchRequest{ThreadId: "t1"})
			return err
		},
	}
}

// readAll reads a sequence to its end, and returns its last error.
func readAll[T any](all func(yield func(T, error) bool)) (last error) {
	for _, err := range all {
		last = err
	}
	return last
}

// Each call of a closed engine says so, and that it need not be made again.
func TestCallsOfAClosedEngine(t *testing.T) {
	e, err := graphd.Open(t.Context(), graphd.Memory(), newOrders())
	require.NoError(t, err)
	_, err = e.Invoke(t.Context(), client.Run{Graph: "orders", Thread: "t1", Input: order{Product: "tea"}})
	require.NoError(t, err)
	require.NoError(t, e.Close(t.Context()))
	for name, call := range engineCalls() {
		err := call(t.Context(), e)
		require.ErrorIs(t, err, graphd.ErrClosed, name)
		require.Equal(t, codes.Canceled, status.Code(err), "%s: %v", name, err)
		require.ErrorContains(t, err, graphd.ErrClosed.Error(), name)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrUnexpectedEOF)
	_, err = e.Start(ctx, client.Run{Graph: "orders"})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the caller has ended its call itself")
}

// Calls that an engine cuts when it is closed say so, too.
func TestCallsThatAnEngineCuts(t *testing.T) {
	begun := make(chan struct{})
	stuck := graph.New("stuck").Channel("n").Node("wait", func(ctx context.Context, _ graph.State) (any, error) {
		close(begun)
		<-ctx.Done()
		return nil, ctx.Err()
	}).Chain(graph.Start, "wait", graph.End)
	e, err := graphd.OpenWith(t.Context(), graphd.Memory(), graphd.Options{Args: []string{"--drain-timeout=1s"}}, stuck)
	require.NoError(t, err)
	run := client.Run{Graph: "stuck", Thread: "t1", Input: map[string]any{}}
	_, err = e.Start(t.Context(), run)
	require.NoError(t, err)
	<-begun
	events, err := e.Graphs().Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = events.Recv()
	require.NoError(t, err)
	calls := map[string]func() error{
		"wait": func() error {
			_, err := e.Wait(t.Context(), "t1", "")
			return err
		},
		"watch": func() error { return readAll(e.Watch(t.Context(), "t1", nil)) },
		"generated": func() error {
			_, err := e.Graphs().WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1"})
			return err
		},
		"interrupts": func() error {
			stream, err := e.Interrupts().WatchInterrupts(t.Context(), &graphdv1.WatchInterruptsRequest{})
			for err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
	type end struct {
		name string
		err  error
	}
	ends := make(chan end, len(calls))
	for name, call := range calls {
		go func() { ends <- end{name, call()} }()
	}
	require.NoError(t, e.Close(context.WithoutCancel(t.Context())))
	for range calls {
		ended := <-ends
		if ended.name == "interrupts" && ended.err == io.EOF { //nolint:errorlint // of a generated stream
			continue // it has told its end in order
		}
		require.ErrorIs(t, ended.err, graphd.ErrClosed, ended.name)
	}
}
