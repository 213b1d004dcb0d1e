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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/testkit/built"
	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// server is a server as a caller sees it.
type server struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.WorkerServiceClient

	*process.Process
	address string
}

// scene is two servers on one Redis.
type scene struct {
	*testing.T

	a, b   *server
	store  string
	ledger string // where workers write who walked
	flags  []string
}

func newScene(t *testing.T, flags ...string) *scene {
	t.Helper()
	redis := redistest.Start(t, "--appendfsync", "no")
	s := &scene{T: t, store: redis.URL(""), ledger: filepath.Join(t.TempDir(), "ledger"), flags: flags}
	binary := built.Graphd(t)
	s.a, s.b = s.serve(binary, s.store), s.serve(binary, s.store)
	return s
}

func (s *scene) serve(binary, store string) *server {
	s.Helper()
	// A worker that lives is silent for three seconds on no machine; one that is killed is missed soon.
	p := process.Launch(s.T, "server", func() *exec.Cmd {
		return exec.Command(binary, append([]string{
			"serve", "--listen", "127.0.0.1:0", "--store", store, "--graphs", "testdata", "--lease", "5s", "--worker-beat", "1s",
			"--worker-lease", "4s", "--worker-key", "k", "--worker-losses", "100", "--log-format", "json",
		}, s.flags...)...)
	})
	address := p.Serving()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(s, err)
	s.Cleanup(func() { _ = conn.Close() })
	return &server{
		graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn),
		graphdv1.NewRegistryServiceClient(conn), graphdv1.NewWorkerServiceClient(conn), p, address,
	}
}

// worker starts a worker that is attached to a server, and waits for it.
func (s *scene) worker(name string, at *server) *process.Process {
	s.Helper()
	python := process.Python(s.T)
	p := process.Launch(s.T, name, func() *exec.Cmd {
		cmd := exec.Command(python, "nomad.py")
		cmd.Env = append(os.Environ(), "MOVES_NAME="+name, "MOVES_LEDGER="+s.ledger, "MOVES_SERVER="+at.address)
		return cmd
	})
	require.Eventually(s, func() bool {
		list, err := at.ListWorkers(s.Context(), &graphdv1.ListWorkersRequest{Graph: "walk"})
		return err == nil && len(list.GetWorkers()) > 0
	}, time.Minute, 50*time.Millisecond)
	return p
}

// walked lists who walked, in order.
func (s *scene) walked() []string {
	data, err := os.ReadFile(s.ledger)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(s, err)
	return strings.Fields(string(data))
}

// everything that is stored.
var everything = []graphdv1.Channel{
	graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES,
	graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS, graphdv1.Channel_CHANNEL_CHECKPOINTS,
}

// follow watches a thread at a server until its run is over. What it saw must
// be what the log has, and nothing of it twice.
func (s *scene) follow(at *server, run *graphdv1.Run) (over func()) {
	s.Helper()
	type result struct {
		seen []uint64
		err  error
	}
	done := make(chan result, 1)
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	go func() {
		defer cancel()
		seen, err := watch(ctx, at, run, true)
		done <- result{seen, err}
	}()
	return func() {
		s.Helper()
		live := <-done
		require.NoError(s, live.err)
		stored, err := watch(s.Context(), s.a, run, false)
		require.NoError(s, err)
		require.Equal(s, stored, live.seen)
	}
}

// watch lists the numbers of the durable events of a thread.
func watch(ctx context.Context, at *server, run *graphdv1.Run, follow bool) ([]uint64, error) {
	stream, err := at.Watch(ctx, &graphdv1.WatchRequest{
		ThreadId: run.GetThreadId(), Start: &graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}},
		Follow: follow, Filter: &graphdv1.EventFilter{Channels: everything},
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
		switch e.GetRunState().GetState() {
		case graphdv1.RunState_RUN_STATE_SUCCEEDED, graphdv1.RunState_RUN_STATE_FAILED, graphdv1.RunState_RUN_STATE_CANCELLED:
			if follow {
				return seen, nil
			}
		default:
		}
	}
}

// begin starts a run at a server, as soon as the server knows the graph.
func (s *scene) begin(at *server, graph, input string) *graphdv1.Run {
	s.Helper()
	var run *graphdv1.Run
	require.Eventually(s, func() bool {
		var err error
		run, err = at.StartRun(s.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
			CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: text(input)},
		}})
		if status.Code(err) != codes.NotFound {
			require.NoError(s, err)
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	return run
}

// stops waits at a server until a run has stopped in a state.
func (s *scene) stops(at *server, run *graphdv1.Run, want graphdv1.RunState) *graphdv1.Run {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	run, err := at.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(s, err)
	require.Equal(s, want, run.GetState(), run.GetFailure())
	return run
}

func (s *scene) answer(at *server, run *graphdv1.Run, value string) {
	s.Helper()
	_, err := at.ResumeRun(s.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(),
		Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: text(value)}},
	}})
	require.NoError(s, err)
}

func text(json string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: json}}
}
