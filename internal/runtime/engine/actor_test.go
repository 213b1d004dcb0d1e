package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

var (
	ana = runtime.Actor{Name: "ana", How: "certificate", Method: "graphd.v1.GraphService/StartRun"}
	ben = runtime.Actor{Name: "ben", How: "jwt", Method: "graphd.v1.GraphService/ResumeRun"}
	eve = runtime.Actor{Name: "eve", How: "api key", Method: "graphd.v1.GraphService/Resume"}
)

// newActorFixture has a graph that asks, one that works until it is cancelled or released,
// and one that fails.
func newActorFixture(t *testing.T) (f *fixture, release func()) {
	t.Helper()
	released := make(chan struct{})
	f = newFixture(t, map[string]nodeFunc{
		"ask": func(_ context.Context, c *nodeCall) pregel.Result {
			if len(c.Journal.Answers) > 0 {
				return logUpdate(`"answered"`)
			}
			return pregel.Result{Asks: []pregel.Ask{{Value: `"?"`, TTL: time.Hour, Expiry: checkpoint.ExpiryResumeDefault}}}
		},
		"work": func(ctx context.Context, _ *nodeCall) pregel.Result {
			select {
			case <-released:
				return logUpdate(`"worked"`)
			case <-ctx.Done():
				return failedResult("cut off")
			}
		},
		"fail": func(_ context.Context, c *nodeCall) pregel.Result {
			if c.stateText("n") == "0" {
				sleepVirtual(time.Second) // others may ask first
				return failedResult("broken")
			}
			return logUpdate(`"mended"`)
		},
		"last": updateNode(`{"log":["last"]}`),
	},
		chainSpec("asks", channelsLog, "ask", "last"), chainSpec("works", channelsLog, "work"), chainSpec("fails", channelsLog, "fail"))
	return f, func() { close(released) }
}

// forkSpec returns a spec of nodes that run at the same time.
func forkSpec(name string, nodes ...string) *graph.Spec {
	s := &graph.Spec{Name: name, Channels: channelsLog}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, functionNode(n))
		s.Edges = append(s.Edges, newEdge(graph.Start, n), newEdge(n, graph.End))
	}
	return s
}

func (f *fixture) startAs(by runtime.Actor, thread, graphName string, more func(*runtime.StartRequest)) *runtime.Started {
	f.t.Helper()
	req := runtime.StartRequest{Thread: thread, CreateThread: true, Graph: graphName, By: by, Request: checkpoint.RunRequest{Input: `{"n":0}`}}
	if more != nil {
		more(&req)
	}
	st, err := f.engine.Start(f.t.Context(), req)
	require.NoError(f.t, err)
	return st
}

// startAndAsk starts a run that waits for an answer.
func (f *fixture) startAndAsk(by runtime.Actor, thread string) checkpoint.Run {
	f.t.Helper()
	run := f.waitRun(f.startAs(by, thread, "asks", nil))
	require.Equal(f.t, checkpoint.RunInterrupted, run.State)
	return run
}

// listActors lists the newest events of a thread that have an actor.
func (f *fixture) listActors(thread string, after uint64) []string {
	f.t.Helper()
	events, err := f.store.Events(f.t.Context(), thread, after, 0)
	require.NoError(f.t, err)
	var out []string
	for _, e := range events {
		if e.Actor != "" {
			out = append(out, e.Actor+": "+describeEvent(e))
		}
	}
	return out
}

func (f *fixture) lastEvent(thread string) uint64 {
	f.t.Helper()
	head, err := f.store.Head(f.t.Context(), thread)
	require.NoError(f.t, err)
	return head.LastEvent
}

func (f *fixture) readOnlyInterrupt(thread string) checkpoint.Interrupt {
	f.t.Helper()
	list, err := f.store.Interrupts(f.t.Context(), checkpoint.InterruptQuery{Thread: thread})
	require.NoError(f.t, err)
	require.Len(f.t, list, 1)
	return list[0]
}

func (f *fixture) requireStartedBy(name string, run checkpoint.Run) {
	f.t.Helper()
	stored, err := f.store.Run(f.t.Context(), run.Thread, run.ID)
	require.NoError(f.t, err)
	require.Equal(f.t, name, stored.StartedBy)
}

// The events of a call have its caller, what the graph does has none, and the answer says
// who gave it, when and how.
func TestCallsRecordWhoMadeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		run := f.waitRun(f.startAs(ana, "t", "asks", func(req *runtime.StartRequest) {
			req.Metadata = map[string]string{"started_by": "eve", "actor": "eve", "principal": "eve"}
		}))
		f.requireStartedBy("ana", run)
		require.Equal(t, []string{"ana: run running", "ana: checkpoint input -1"}, f.listActors("t", 0))
		asked := f.readOnlyInterrupt("t")
		require.Empty(t, asked.Responder+asked.ResponderHow+asked.ResponseMethod)
		require.Zero(t, asked.ResponseTime)

		sleepVirtual(time.Minute)
		before, answeredAt := f.lastEvent("t"), time.Now()
		st, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: ben, Single: &runtime.Response{Value: `{"responder":"eve"}`, Note: "eve"}, Metadata: map[string]string{"actor": "eve"},
		})
		require.NoError(t, err)
		run = f.waitRun(st)
		require.Equal(t, checkpoint.RunSucceeded, run.State)
		f.requireStartedBy("ana", run)
		require.Equal(t, []string{"ben: run running", "ben: 1 resolved answered"}, f.listActors("t", before))
		used := f.readOnlyInterrupt("t")
		require.Equal(t, checkpoint.InterruptConsumed, used.State)
		require.Equal(t, ben, responderOf(&used))
		require.True(t, answeredAt.Equal(used.ResponseTime), used.ResponseTime)
	})
}

// responderOf returns who has answered a question.
func responderOf(q *checkpoint.Interrupt) runtime.Actor {
	return runtime.Actor{Name: q.Responder, How: q.ResponderHow, Method: q.ResponseMethod}
}

// A server that does not know its callers keeps nothing of them.
func TestUnknownCallersLeaveNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		run := f.startAndAsk(runtime.Actor{}, "t")
		f.answerSingle("t", "true")
		f.requireStartedBy("", run)
		require.Empty(t, f.listActors("t", 0))
		used := f.readOnlyInterrupt("t")
		require.Empty(t, used.Responder+used.ResponderHow+used.ResponseMethod)
		require.Zero(t, used.ResponseTime)
	})
}

func TestDismissalsSayWhoDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		f.startAndAsk(ana, "t")
		st, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{
			Thread: "t", By: eve, Single: &runtime.Response{Dismissed: true, Note: "not now"},
		})
		require.NoError(t, err)
		f.waitRun(st)
		q := f.readOnlyInterrupt("t")
		require.True(t, q.Dismissed)
		require.Equal(t, eve, responderOf(&q))
	})
}

// An answer that comes to a run that is live has its caller all the same.
func TestStoredAnswersSayWhoAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := newActorFixture(t)
		f.compileGraph(forkSpec("both", "ask", "work"))
		started := f.startAs(ana, "t", "both", nil)
		synctest.Wait()
		before := f.lastEvent("t")
		_, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", By: ben, Single: &runtime.Response{Value: "true"}})
		require.NoError(t, err)
		release()
		require.Equal(t, checkpoint.RunSucceeded, f.waitRun(started).State)
		require.Equal(t, []string{"ben: 1 resolved answered"}, f.listActors("t", before))
		q := f.readOnlyInterrupt("t")
		require.Equal(t, checkpoint.InterruptConsumed, q.State)
		require.Equal(t, "ben", q.Responder)
		require.NotZero(t, q.ResponseTime)
	})
}

// What happens without an answer has no actor.
func TestExpiryHasNoActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		run := f.startAndAsk(ana, "t")
		before := f.lastEvent("t")
		sleepVirtual(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, checkpoint.InterruptExpired, f.readOnlyInterrupt("t").State)
		require.Empty(t, f.listActors("t", before))
		require.Zero(t, f.readOnlyInterrupt("t").ResponseTime)
		f.requireStartedBy("ana", run)
	})
}

// A run that begins later is still that of who started it, and what it supersedes is
// superseded by that caller.
func TestQueuedRunsKeepWhoStartedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := newActorFixture(t)
		f.startAs(ana, "t", "works", nil)
		synctest.Wait()
		before := f.lastEvent("t")
		queued := f.startAs(ben, "t", "works", func(req *runtime.StartRequest) { req.Concurrency = runtime.EnqueueBusy })
		require.Equal(t, []string{"ben: run queued"}, f.listActors("t", before))
		before = f.lastEvent("t")
		release()
		run := f.waitRun(queued)
		require.Equal(t, checkpoint.RunSucceeded, run.State)
		f.requireStartedBy("ben", run)
		require.Equal(t, []string{"ben: run running", "ben: checkpoint input 2"}, f.listActors("t", before))
	})
}

func TestARunThatDiscardsQuestionsSupersedesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		f.startAndAsk(ana, "t")
		before := f.lastEvent("t")
		f.startAs(ben, "t", "asks", func(req *runtime.StartRequest) { req.Open = runtime.DiscardOpen })
		require.Equal(t, []string{"ben: 1 resolved superseded", "ben: run superseded", "ben: run running", "ben: checkpoint input 1"},
			f.listActors("t", before))
	})
}

func TestCancelsSayWhoCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		cancel := func(thread, run string, rollback bool) {
			_, err := f.engine.Cancel(t.Context(), runtime.CancelRequest{Thread: thread, Run: run, Rollback: rollback, Reason: "ana", By: eve})
			require.NoError(t, err)
			synctest.Wait()
		}
		parked := f.startAndAsk(ana, "parked")
		before := f.lastEvent("parked")
		cancel("parked", "", false)
		require.Equal(t, []string{"eve: 1 resolved cancelled", "eve: run cancelled CANCELLED_BY_CLIENT"}, f.listActors("parked", before))
		f.requireStartedBy("ana", parked)

		live := f.startAs(ana, "live", "works", nil)
		synctest.Wait()
		queued := f.startAs(ben, "live", "works", func(req *runtime.StartRequest) { req.Concurrency = runtime.EnqueueBusy })
		before = f.lastEvent("live")
		cancel("live", queued.Run.ID, false)
		require.Equal(t, []string{"eve: run cancelled CANCELLED_BY_CLIENT"}, f.listActors("live", before))
		f.requireStartedBy("ben", queued.Run)
		before = f.lastEvent("live")
		cancel("live", live.Run.ID, true)
		require.Equal(t, []string{"eve: run cancelling", "eve: run cancelled CANCELLED_BY_CLIENT"}, f.listActors("live", before))
		f.requireStartedBy("ana", live.Run)
	})
}

// A run that takes the place of another one cancels it in the name of its caller.
func TestARunThatTakesThePlaceOfAnotherCancelsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := newActorFixture(t)
		f.startAs(ana, "t", "works", nil)
		synctest.Wait()
		before := f.lastEvent("t")
		next := f.startAs(ben, "t", "works", func(req *runtime.StartRequest) { req.Concurrency = runtime.CancelActive })
		synctest.Wait()
		require.Equal(t, []string{
			"ben: run cancelling", "ben: run queued", "ben: run cancelled CANCELLED_BY_CLIENT", "ben: run running", "ben: checkpoint input 1",
		}, f.listActors("t", before))
		release()
		f.requireStartedBy("ben", f.waitRun(next))
	})
}

func TestUpdatesAndForksSayWhoMadeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		f.startAndAsk(ana, "t")
		before := f.lastEvent("t")
		update := runtime.UpdateStateRequest{
			Thread: "t", Values: `{"log":["by hand"]}`, AsNode: "ask", SupersedeInterrupts: true, RequestID: "once", Digest: "d", By: ben,
		}
		_, err := f.engine.UpdateState(t.Context(), update)
		require.NoError(t, err)
		want := []string{
			`ben: ask {"log":["by hand"]}`, "ben: values", "ben: checkpoint update 1", "ben: last scheduled",
			"ben: 1 resolved superseded", "ben: run superseded",
		}
		require.Equal(t, want, f.listActors("t", before))
		require.Empty(t, f.readOnlyInterrupt("t").Responder)
		update.By = eve
		_, err = f.engine.UpdateState(t.Context(), update)
		require.NoError(t, err)
		require.Equal(t, want, f.listActors("t", before), "a repeated call adds nothing")

		_, err = f.engine.ForkThread(t.Context(), runtime.ForkRequest{Source: "t", Thread: "fork", By: eve})
		require.NoError(t, err)
		require.Equal(t, []string{"eve: checkpoint fork 1"}, f.listActors("fork", 0))

		_, err = f.engine.CopyThread(t.Context(), runtime.CopyRequest{Source: "t", Thread: "copy", By: eve})
		require.NoError(t, err)
		require.Equal(t, f.listActors("t", 0), f.listActors("copy", 0), "a copy has the history of its source")
	})
}

// A call that is repeated with its request id, by whomever, leaves what the first call
// said.
func TestTheFirstCallerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		withID := func(req *runtime.StartRequest) { req.RequestID, req.Digest = "start", "d" }
		first := f.startAs(ana, "t", "asks", withID)
		f.waitRun(first)
		again := f.startAs(eve, "t", "asks", withID)
		require.True(t, again.IsAttached)
		require.Equal(t, "ana", again.Run.StartedBy)

		answer := runtime.ResumeRequest{Thread: "t", By: ben, Single: &runtime.Response{Value: "true"}, RequestID: "answer", Digest: "d"}
		st, err := f.engine.Resume(t.Context(), answer)
		require.NoError(t, err)
		f.waitRun(st)
		events, question := f.listActors("t", 0), f.readOnlyInterrupt("t")
		answer.By = eve
		_, err = f.engine.Resume(t.Context(), answer)
		require.NoError(t, err)
		answer.Single, answer.Responses, answer.RequestID = nil, []runtime.Response{{Interrupt: question.ID, Value: "true"}}, ""
		_, err = f.engine.Resume(t.Context(), answer)
		require.NoError(t, err, "the same answer again is accepted")
		require.Equal(t, events, f.listActors("t", 0))
		require.Equal(t, question, f.readOnlyInterrupt("t"))
		f.requireStartedBy("ana", first.Run)
	})
}

// An answer to a question of a run that has failed starts a run, of who answers.
func TestWhoAnswersAfterAFailureStartsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		f.compileGraph(forkSpec("both", "ask", "fail"))
		failed := f.waitRun(f.startAs(ana, "t", "both", nil))
		require.Equal(t, checkpoint.RunFailed, failed.State)
		before := f.lastEvent("t")
		st, err := f.engine.Resume(t.Context(), runtime.ResumeRequest{Thread: "t", By: ben, Single: &runtime.Response{Value: "true"}})
		require.NoError(t, err)
		next := f.waitRun(st)
		require.NotEqual(t, failed.ID, next.ID)
		f.requireStartedBy("ana", failed)
		f.requireStartedBy("ben", next)
		require.Equal(t, []string{"ben: run running", "ben: 1 resolved answered"}, f.listActors("t", before))
		require.Equal(t, "ben", f.readOnlyInterrupt("t").Responder)
	})
}

// Another server that goes on with a run is not who started it.
func TestTakeOversKeepWhoStartedTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := newActorFixture(t)
		started := f.startAs(ana, "t", "works", nil)
		synctest.Wait()
		before := f.lastEvent("t")
		f.engine.Close()
		f.startEngine()
		sleepVirtual(time.Minute)
		release()
		run := f.waitRun(started)
		require.Equal(t, checkpoint.RunSucceeded, run.State)
		f.requireStartedBy("ana", run)
		require.Empty(t, f.listActors("t", before))
	})
}

// A run that failed is over: who goes on starts another one.
func TestWhoGoesOnAfterAFailureStartsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newActorFixture(t)
		failed := f.waitRun(f.startAs(ana, "t", "fails", nil))
		require.Equal(t, checkpoint.RunFailed, failed.State)
		before := f.lastEvent("t")
		next := f.waitRun(f.startAs(ben, "t", "fails", func(req *runtime.StartRequest) {
			req.Request = checkpoint.RunRequest{Update: `{"n":1}`}
		}))
		require.Equal(t, checkpoint.RunSucceeded, next.State)
		f.requireStartedBy("ana", failed)
		f.requireStartedBy("ben", next)
		require.Equal(t, "ben: run running", f.listActors("t", before)[0])
	})
}
