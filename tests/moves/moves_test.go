package moves_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

const (
	succeeded   = graphdv1.RunState_RUN_STATE_SUCCEEDED
	interrupted = graphdv1.RunState_RUN_STATE_INTERRUPTED
)

// runLog is what a run has written down.
func runLog(t *testing.T, run *graphdv1.Run) []string {
	t.Helper()
	var out struct{ Log []string }
	require.NoError(t, json.Unmarshal([]byte(run.GetOutput().GetJson()), &out))
	return out.Log
}

// The worker is at one server; runs begin, are followed and are answered at the
// other.
func TestAWorkerAtOneServerServesTheRunsOfAnother(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "--lease", "1h") // a run that waits for a lease to end does not end in time
	s.startWorker("w1", s.first)
	s.waitForState(s.second, s.startRun(s.second, "walk", `{"steps":1,"pace":0}`), interrupted) // now both servers know the graph
	var runs []*graphdv1.Run
	var over []func()
	for i := range 10 {
		run := s.startRun(s.second, "walk", fmt.Sprintf(`{"steps":%d,"pace":0}`, i+1))
		runs, over = append(runs, run), append(over, s.followThread(s.second, run))
	}
	for _, run := range runs {
		s.waitForState(s.second, run, interrupted)
		s.answerRun(s.second, run, `"yes"`)
	}
	for i, run := range runs {
		run = s.waitForState(s.second, run, succeeded)
		require.Equal(t, append(slices.Repeat([]string{"w1"}, i+1), "yes@w1"), runLog(t, run))
		over[i]()
	}
	require.Len(t, s.readLedger(), 1+55, "no step was taken twice")
}

// A worker leaves in the middle of a run, as in a deployment; the next one is
// attached to another server.
func TestARunGoesWhereTheNextWorkerIs(t *testing.T) {
	t.Parallel()
	const steps = 60
	s := newFixture(t)
	first := s.startWorker("w1", s.first)
	s.startWorker("w2", s.second)
	run := s.startRun(s.first, "walk", fmt.Sprintf(`{"steps":%d,"pace":0.02}`, steps))
	here, there := s.followThread(s.first, run), s.followThread(s.second, run)
	require.Eventually(t, func() bool { return len(s.readLedger()) > 3 }, time.Minute, time.Millisecond)
	first.Stop(syscall.SIGTERM)
	run = s.waitForState(s.first, run, interrupted)
	s.answerRun(s.first, run, `"no"`)
	log := runLog(t, s.waitForState(s.first, run, succeeded))
	here()
	there()
	require.Len(t, log, steps+1)
	require.Equal(t, "no@w2", log[steps])
	byFirst := slices.Index(log, "w2")
	require.Positive(t, byFirst)
	require.NotContains(t, log[byFirst:steps], "w1")
	require.Equal(t, log[:steps], s.readLedger(), "no step was taken twice")
}

// A worker dies in the middle of a node; the only other one is elsewhere.
func TestARunLeavesADeadWorker(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	first := s.startWorker("w1", s.first)
	run := s.startRun(s.first, "walk", `{"steps":1,"pace":30}`)
	over := s.followThread(s.first, run)
	require.Eventually(t, func() bool { return len(s.readLedger()) > 0 }, time.Minute, time.Millisecond)
	s.startWorker("w2", s.second)
	first.Stop(syscall.SIGKILL)
	require.Eventually(t, func() bool { return slices.Equal(s.readLedger(), []string{"w1", "w2"}) }, time.Minute, 10*time.Millisecond,
		"the second worker was not asked: %v", s.readLedger())
	_, err := s.second.CancelRun(t.Context(), &graphdv1.CancelRunRequest{ThreadId: run.GetThreadId(), RunId: run.GetRunId()})
	require.NoError(t, err)
	s.waitForState(s.first, run, graphdv1.RunState_RUN_STATE_CANCELLED)
	over()
}

// The nodes of one graph have their workers at two servers, some of them in one
// superstep.
func TestAGraphWithWorkersAtTwoServers(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.attachScripted(s.first, "east", "north")
	s.attachScripted(s.second, "west", "south")
	var runs []*graphdv1.Run
	for i := range 10 {
		at := []*harness.Server{s.first, s.second}[i%2]
		runs = append(runs, s.startRun(at, "compass", `{"log":[]}`))
	}
	for _, run := range runs {
		over := s.followThread(s.second, run)
		log := runLog(t, s.waitForState(s.first, run, succeeded))
		slices.Sort(log[:2])
		require.Equal(t, []string{"east", "west", "north", "south", "home"}, log)
		over()
	}
}

// Workers are never anywhere for long, and a server dies: every run ends, with
// each node in its place.
func TestWorkersThatMoveAround(t *testing.T) {
	t.Parallel()
	const threads = 40
	s := newFixture(t)
	var mu sync.Mutex
	alive := []*harness.Server{s.first, s.second}
	pick := func() *harness.Server {
		mu.Lock()
		defer mu.Unlock()
		return alive[rand.IntN(len(alive))]
	}
	ctx, calm := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for i := range 3 {
		workers.Go(func() {
			for ctx.Err() == nil {
				leave, err := s.attachWorker(pick(), fmt.Sprint("w", i), "east", "west", "north", "south")
				if err == nil {
					harness.SleepContext(ctx, time.Duration(rand.IntN(150))*time.Millisecond)
					leave()
				}
			}
		})
	}
	runs := make([]*graphdv1.Run, threads)
	for i := range runs {
		if i == threads/2 {
			mu.Lock()
			alive[0] = s.startServer()
			mu.Unlock()
			s.first.Stop(syscall.SIGKILL)
			s.first = alive[0]
		}
		runs[i] = s.startRun(pick(), "compass", `{"log":[]}`)
		harness.SleepContext(ctx, 30*time.Millisecond)
	}
	calm()
	workers.Wait()
	s.attachScripted(s.first, "east", "north")
	s.attachScripted(s.second, "west", "south")
	for _, run := range runs {
		over := s.followThread(s.second, run)
		log := runLog(t, s.waitForState(s.first, run, succeeded))
		slices.Sort(log[:2])
		require.Equal(t, []string{"east", "west", "north", "south", "home"}, log)
		over()
	}
}

// attachScripted attaches a worker that takes some nodes of a graph which the servers
// know from a file.
func (s *fixture) attachScripted(at *harness.Server, nodes ...string) {
	s.Helper()
	leave, err := s.attachWorker(at, strings.Join(nodes, "-"), nodes...)
	require.NoError(s, err)
	s.Cleanup(leave)
}

func (s *fixture) attachWorker(at *harness.Server, name string, nodes ...string) (leave func(), err error) {
	ctx, cancel := context.WithCancel(s.Context())
	stream, err := at.Connect(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	hello := &graphdv1.Hello{
		WorkerId: name, Manifest: &graphdv1.WorkerManifest{}, Credit: &graphdv1.Credit{TotalSlots: 10},
	}
	for _, n := range nodes {
		hello.Manifest.Nodes = append(hello.Manifest.Nodes, &graphdv1.ServedNode{Graph: "compass", Node: n})
	}
	if err := stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Hello{Hello: hello}}); err != nil {
		cancel()
		return nil, err
	}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			task := m.GetTask()
			if task == nil {
				continue
			}
			_, _ = at.CompleteTask(ctx, &graphdv1.CompleteTaskRequest{
				LeaseToken: task.GetLease().GetToken(), Result: &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Completed{
					Completed: &graphdv1.TaskCompleted{Update: harness.NewPayload(fmt.Sprintf(`{"log":[%q]}`, task.GetNode()))},
				}},
			})
		}
	}()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if stream.Send(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Beat{Beat: &graphdv1.Beat{Number: n}}}) != nil {
				return
			}
		}
	}()
	return cancel, nil
}
