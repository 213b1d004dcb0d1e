package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// fork is a graph whose nodes bad and slow run side by side.
func fork() *graphdv1.GraphSpec {
	g := chain("fork", "bad", "slow")
	g.Edges = []*graphdv1.EdgeSpec{
		{Sources: []string{"__start__"}, Target: "bad"}, {Sources: []string{"__start__"}, Target: "slow"},
	}
	return g
}

// again goes on with a run that has failed.
func (s *server) again(run *graphdv1.Run) *graphdv1.Run {
	s.t.Helper()
	next, err := s.StartRun(s.t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: run.GetThreadId(), Graph: run.GetGraph(),
	}})
	require.NoError(s.t, err)
	return next
}

// A node that was told to stop, and finishes all the same, never runs again.
func TestASiblingThatFinishesInAWorkerIsKept(t *testing.T) {
	s := start(t, config{})
	w := s.connect(&graphdv1.Hello{
		WorkerId: "w1", Credit: &graphdv1.Credit{TotalSlots: 2}, Manifest: &graphdv1.WorkerManifest{Graphs: specs(fork())},
	})
	run := s.begin("fork", `{"x":0}`)
	bad, slow := w.next(), w.next()
	if bad.GetNode() == "slow" {
		bad, slow = slow, bad
	}
	_, err := w.complete(bad, failure("Boom", "x"))
	require.NoError(t, err)
	stop := await(t, w.cancels, "a cancel")
	require.Equal(t, slow.GetLease().GetToken(), stop.GetLeaseToken())
	_, err = w.complete(slow, completed(`{"log":["slow"]}`))
	require.NoError(t, err)
	run = s.wait(run)
	require.Equal(t, "NODE_FAILED", run.GetFailure().GetReason())

	run = s.again(run)
	bad = w.next()
	require.Equal(t, "bad", bad.GetNode())
	_, err = w.complete(bad, completed(`{"log":["bad"]}`))
	require.NoError(t, err)
	run = s.wait(run)
	require.JSONEq(t, `{"x":0,"log":["bad","slow"]}`, run.GetOutput().GetJson())
	require.Empty(t, w.tasks)
}

func TestASiblingThatFinishesOnAnEndpointIsKept(t *testing.T) {
	s := start(t, config{})
	n := &service{}
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
			send(result(completed(`{"log":["slow"]}`)))
		case fine:
			send(result(completed(`{"log":["bad"]}`)))
		default:
			<-begun
			send(result(failure("Boom", "x")))
		}
		return nil
	}
	n.listen(t)
	s.put(at(fork(), n.address, nil))
	run := s.run("fork", `{"x":0}`)
	require.Equal(t, "NODE_FAILED", run.GetFailure().GetReason())
	fine = true
	run = s.wait(s.again(run))
	require.JSONEq(t, `{"x":0,"log":["bad","slow"]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, n.calls.Load())
}
