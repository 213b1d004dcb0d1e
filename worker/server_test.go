package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
	"github.com/graphd-dev/graphd/worker"
)

// server is a graphd in a process of its own, and a client of it.
type server struct {
	*harness.Server

	client *client.Client
}

func startServer(t *testing.T, flags ...string) *server {
	t.Helper()
	return startServerOn(t, "memory", flags...)
}

func startServerOn(t *testing.T, store string, flags ...string) *server {
	t.Helper()
	s := &server{Server: harness.StartServer(t, []string{built.Graphd(t)}, store, flags...)}
	s.client = dialClient(t, s.Address)
	return s
}

func dialClient(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// running is a worker that serves until the test ends, or it is stopped.
type running struct {
	*worker.Worker

	t      *testing.T
	cancel context.CancelFunc
	end    chan error
}

func serve(t *testing.T, address string, graphs ...*graph.Builder) *running {
	t.Helper()
	return serveWith(t, address, worker.Options{Graphs: graphs})
}

func serveWith(t *testing.T, address string, o worker.Options) *running {
	t.Helper()
	w, err := worker.Dial(address, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{Worker: w, t: t, cancel: cancel, end: make(chan error, 1)}
	go func() { r.end <- w.Run(ctx) }()
	t.Cleanup(cancel)
	select {
	case err := <-r.end:
		require.NoError(t, err, "the worker has ended")
	case <-w.Ready():
	case <-newLimit(t):
		require.FailNow(t, "the worker was not taken")
	}
	return r
}

// stop ends the worker, and returns what Run has returned.
func (r *running) stop() error {
	r.t.Helper()
	r.cancel()
	return receive(r.t, r.end, "the end of the worker")
}

// newLimit returns the end of a minute: a limit against hanging.
func newLimit(t *testing.T) <-chan time.Time {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	t.Cleanup(func() { timer.Stop() })
	return timer.C
}

// receive receives with a limit, so that a test fails instead of hanging.
func receive[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-newLimit(t):
		require.FailNow(t, "waited too long for "+what)
	}
	return v
}

// invoke runs a graph to its end or its questions.
func (s *server) invoke(t *testing.T, graphName, thread string, input any) *client.Outcome {
	t.Helper()
	o, err := s.client.Invoke(t.Context(), client.Run{Graph: graphName, Thread: thread, Input: input})
	require.NoError(t, err)
	return o
}

// waitForWorker waits until a worker is connected.
func (s *server) waitForWorker(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := s.client.Registry().ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{})
		return err == nil && len(list.GetWorkers()) > 0
	}, time.Minute, 20*time.Millisecond)
}

// requireOutput requires that a run has succeeded with an output.
func requireOutput(t *testing.T, want string, o *client.Outcome) {
	t.Helper()
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, o.Run.GetState(), o.Run.GetFailure())
	require.JSONEq(t, want, o.Run.GetOutput().GetJson())
}

// requireFailure requires that a run has failed with a type.
func requireFailure(t *testing.T, kind string, o *client.Outcome) *graphdv1.Failure {
	t.Helper()
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, o.Run.GetState())
	require.Equal(t, kind, o.Run.GetFailure().GetType(), o.Run.GetFailure())
	return o.Run.GetFailure()
}
