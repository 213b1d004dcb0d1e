// Package moves_test attaches real workers to real servers on one Redis, not
// always to the one on which runs begin.
package moves_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
	"github.com/graphd-dev/graphd/tests/harness"
)

// fixture is two servers on one Redis.
type fixture struct {
	*testing.T

	first, second *harness.Server
	storeURL      string
	ledgerPath    string // where workers write who walked
	flags         []string
}

func newFixture(t *testing.T, flags ...string) *fixture {
	t.Helper()
	redis := redistest.Start(t, "--appendfsync", "no")
	s := &fixture{T: t, storeURL: redis.URL(""), ledgerPath: filepath.Join(t.TempDir(), "ledger"), flags: flags}
	s.first, s.second = s.startServer(), s.startServer()
	return s
}

func (s *fixture) startServer() *harness.Server {
	s.Helper()
	// A worker that lives is silent for three seconds on no machine; one that is killed is missed soon.
	return harness.StartServer(s.T, []string{built.Graphd(s.T)}, s.storeURL, append([]string{
		"--graphs", "testdata", "--lease", "5s", "--worker-beat", "1s", "--worker-lease", "4s", "--worker-key", "k", "--worker-losses", "100",
	}, s.flags...)...)
}

// startWorker starts a worker that is attached to a server, and waits for it.
func (s *fixture) startWorker(name string, at *harness.Server) *process.Process {
	s.Helper()
	python := process.Python(s.T)
	p := process.Launch(s.T, name, func() *exec.Cmd {
		cmd := exec.Command(python, "walking_worker.py")
		cmd.Env = append(os.Environ(), "MOVES_NAME="+name, "MOVES_LEDGER="+s.ledgerPath, "MOVES_SERVER="+at.Address)
		return cmd
	})
	require.Eventually(s, func() bool {
		list, err := at.ListWorkers(s.Context(), &graphdv1.ListWorkersRequest{Graph: "walk"})
		return err == nil && len(list.GetWorkers()) > 0
	}, time.Minute, 50*time.Millisecond)
	return p
}

// readLedger lists who walked, in order.
func (s *fixture) readLedger() []string {
	data, err := os.ReadFile(s.ledgerPath)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(s, err)
	return strings.Fields(string(data))
}

// followThread watches a thread at a server until its run is over. What it saw must
// be what the log has, and nothing of it twice.
func (s *fixture) followThread(at *harness.Server, run *graphdv1.Run) (over func()) {
	s.Helper()
	type result struct {
		seen []uint64
		err  error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	go func() {
		defer cancel()
		seen, err := listEvents(ctx, at, run, true)
		done <- result{seen, err}
	}()
	return func() {
		s.Helper()
		live := <-done
		require.NoError(s, live.err)
		stored, err := listEvents(s.Context(), s.first, run, false)
		require.NoError(s, err)
		require.Equal(s, stored, live.seen)
	}
}

// listEvents lists the numbers of the durable events of a thread.
func listEvents(ctx context.Context, at *harness.Server, run *graphdv1.Run, follow bool) ([]uint64, error) {
	stream, err := at.Watch(ctx, &graphdv1.WatchRequest{
		ThreadId: run.GetThreadId(), Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		Follow: follow, Filter: harness.StoredEvents(),
	})
	if err != nil {
		return nil, err
	}
	var seen []uint64
	for {
		e, err := stream.Recv()
		switch {
		case err != nil:
			return seen, err
		case e.GetEnd() != nil:
			return seen, nil
		case e.GetOpened() != nil, e.GetEphemeral(), e.GetCursor() == nil:
			continue
		}
		seen = append(seen, e.GetCursor().GetSequence())
		if follow && harness.IsEnded(e.GetRunState().GetState()) {
			return seen, nil
		}
	}
}

// startRun starts a run at a server, as soon as the server knows the graph.
func (s *fixture) startRun(at *harness.Server, graph, input string) *graphdv1.Run {
	s.Helper()
	var run *graphdv1.Run
	require.Eventually(s, func() bool {
		var err error
		run, err = at.StartRun(s.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(input)},
		}})
		if status.Code(err) != codes.NotFound {
			require.NoError(s, err)
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	return run
}

// waitForState waits at a server until a run has stopped in a state.
func (s *fixture) waitForState(at *harness.Server, run *graphdv1.Run, want graphdv1.RunState) *graphdv1.Run {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	run, err := at.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(s, err)
	require.Equal(s, want, run.GetState(), run.GetFailure())
	return run
}

func (s *fixture) answerRun(at *harness.Server, run *graphdv1.Run, value string) {
	s.Helper()
	_, err := at.ResumeRun(s.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(),
		Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(value)}},
	}})
	require.NoError(s, err)
}
