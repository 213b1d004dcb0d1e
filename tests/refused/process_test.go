// Package refused_test has real servers whose store takes no changes: it is full, or
// it is not there any more. Clients and health checks are told so, and what to do,
// and all goes on when that is done.
package refused_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/tests/harness"
)

// waitTimeout bounds what must come about some time.
const waitTimeout = 2 * time.Minute

// server is a server as its clients see it.
type server struct {
	*testing.T
	*harness.Server

	health healthpb.HealthClient
}

// startServer starts a server on a store; around wraps its command.
func startServer(t *testing.T, store string, around []string, flags ...string) *server {
	t.Helper()
	command := append(slices.Clone(around), built.Graphd(t))
	s := harness.StartServer(t, command, store, append([]string{"--graphs", "testdata"}, flags...)...)
	return &server{t, s, healthpb.NewHealthClient(s.Conn)}
}

// startRun begins a run of a thread, with so many bytes to keep. The request id makes
// it the same one when it is called again.
func (s *server) startRun(thread string, bytes int) (*graphdv1.Run, error) {
	return s.StartRun(s.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: thread, CreateThread: true, Graph: "keep",
		Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(fmt.Sprintf(`{"note": %q}`, strings.Repeat("x", bytes)))},
	}, RequestId: "of-" + thread})
}

// watchInterrupts begins to follow all interrupts, from a token on if there is one.
func (s *server) watchInterrupts(token string) grpc.ServerStreamingClient[graphdv1.InterruptChange] {
	s.Helper()
	watch, err := s.WatchInterrupts(s.Context(), &graphdv1.WatchInterruptsRequest{ResumeToken: token})
	require.NoError(s, err)
	return watch
}

// readToError is how a stream ends.
func readToError(watch grpc.ServerStreamingClient[graphdv1.InterruptChange]) error {
	for {
		if _, err := watch.Recv(); err != nil {
			return err
		}
	}
}

// runToEnd has a run of a thread that must begin and end.
func (s *server) runToEnd(thread string, bytes int) {
	s.Helper()
	run, err := s.startRun(thread, bytes)
	require.NoError(s, err)
	s.waitEnded(run)
}

// waitEnded waits for the end of a run.
func (s *server) waitEnded(run *graphdv1.Run) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), waitTimeout)
	defer cancel()
	run, err := s.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(s, err)
	require.Equal(s, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
}

// requireRunsGoOn starts a run as soon as the store takes changes again.
func (s *server) requireRunsGoOn(thread string) {
	s.Helper()
	var run *graphdv1.Run
	require.Eventually(s, func() (ok bool) {
		var err error
		run, err = s.startRun(thread, 10)
		return err == nil
	}, waitTimeout, 50*time.Millisecond)
	s.waitEnded(run)
	s.waitForHealth(healthpb.HealthCheckResponse_SERVING, "")
	s.WaitForLine("the store takes changes again")
}

// requireThread reads a thread.
func (s *server) requireThread(thread string) {
	s.Helper()
	got, err := s.GetThread(s.Context(), &graphdv1.GetThreadRequest{ThreadId: thread})
	require.NoError(s, err)
	require.Equal(s, thread, got.GetThreadId())
}

// waitForHealth waits until the health service says something of a service.
func (s *server) waitForHealth(want healthpb.HealthCheckResponse_ServingStatus, service string) {
	s.Helper()
	require.Eventually(s, func() bool {
		got, err := s.health.Check(s.Context(), &healthpb.HealthCheckRequest{Service: service})
		return err == nil && got.GetStatus() == want
	}, waitTimeout, 20*time.Millisecond, "%q is not %s", service, want)
}

// requireRefusing is what is seen of a store that takes no changes: by health checks at
// once, whatever clients do, and in the log with what has to be done.
func (s *server) requireRefusing(reason string, log ...string) {
	s.Helper()
	s.waitForHealth(healthpb.HealthCheckResponse_NOT_SERVING, "")
	s.waitForHealth(healthpb.HealthCheckResponse_NOT_SERVING, "graphd.v1.GraphService")
	s.waitForHealth(healthpb.HealthCheckResponse_SERVING, "reads")
	s.WaitForLine(append([]string{"the store takes no changes", reason}, log...)...)
}

// requireRefusal checks what a client is told.
func requireRefusal(t *testing.T, err error, code codes.Code, reason string, words ...string) {
	t.Helper()
	require.Error(t, err)
	got := status.Convert(err)
	require.Equal(t, code, got.Code(), got.Message())
	for _, d := range got.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			require.Equal(t, reason, info.GetReason())
		}
	}
	for _, w := range words {
		require.Contains(t, got.Message(), w)
	}
}
