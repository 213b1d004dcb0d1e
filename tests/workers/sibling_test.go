package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// newForkGraph is a graph whose nodes bad and slow run side by side.
func newForkGraph() *graphdv1.GraphSpec {
	g := newChainGraph("fork", "bad", "slow")
	g.Edges = []*graphdv1.EdgeSpec{
		{Sources: []string{"__start__"}, Target: "bad"}, {Sources: []string{"__start__"}, Target: "slow"},
	}
	return g
}

// continueRun goes on with a run that has failed.
func (s *server) continueRun(run *graphdv1.Run) *graphdv1.Run {
	s.t.Helper()
	next, err := s.StartRun(s.t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: run.GetThreadId(), Graph: run.GetGraph(),
	}})
	require.NoError(s.t, err)
	return next
}

// A node that was told to stop, and finishes all the same, never runs again.
func TestASiblingThatFinishesInAWorkerIsKept(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(&graphdv1.Hello{
		WorkerId: "w1", Credit: &graphdv1.Credit{TotalSlots: 2}, Manifest: &graphdv1.WorkerManifest{Graphs: listSpecs(newForkGraph())},
	})
	run := s.startRun("fork", `{"x":0}`)
	bad, slow := w.nextTask(), w.nextTask()
	if bad.GetNode() == "slow" {
		bad, slow = slow, bad
	}
	_, err := w.completeTask(bad, failedResult("Boom", "x"))
	require.NoError(t, err)
	stop := receiveOrFail(t, w.cancels, "a cancel")
	require.Equal(t, slow.GetLease().GetToken(), stop.GetLeaseToken())
	_, err = w.completeTask(slow, completedResult(`{"log":["slow"]}`))
	require.NoError(t, err)
	run = s.waitStopped(run)
	require.Equal(t, "NODE_FAILED", run.GetFailure().GetReason())

	run = s.continueRun(run)
	bad = w.nextTask()
	require.Equal(t, "bad", bad.GetNode())
	_, err = w.completeTask(bad, completedResult(`{"log":["bad"]}`))
	require.NoError(t, err)
	run = s.waitStopped(run)
	require.JSONEq(t, `{"x":0,"log":["bad","slow"]}`, run.GetOutput().GetJson())
	require.Empty(t, w.tasks)
}

func TestASiblingThatFinishesOnAnEndpointIsKept(t *testing.T) {
	s := startServer(t, config{})
	n := &nodeService{}
	var fine bool
	begun := make(chan struct{})
	n.execute = func(ctx context.Context, a *graphdv1.TaskAssignment, send func(*graphdv1.TaskUpdate)) error {
		switch {
		case a.GetNode() == "slow":
			close(begun) // panics if the node runs again
			timer := time.NewTimer(200 * time.Millisecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			send(newResultUpdate(completedResult(`{"log":["slow"]}`)))
		case fine:
			send(newResultUpdate(completedResult(`{"log":["bad"]}`)))
		default:
			<-begun
			send(newResultUpdate(failedResult("Boom", "x")))
		}
		return nil
	}
	n.listenAndServe(t)
	s.putGraph(withEndpoint(newForkGraph(), n.address, nil))
	run := s.runGraph("fork", `{"x":0}`)
	require.Equal(t, "NODE_FAILED", run.GetFailure().GetReason())
	fine = true
	run = s.waitStopped(s.continueRun(run))
	require.JSONEq(t, `{"x":0,"log":["bad","slow"]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, n.calls.Load())
}
