package engine_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
)

func contextWithTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestDrainFinishesTheSuperstepAndHandsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var work, last nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": work.newNode(10 * time.Second), "last": last.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work", "last"))
		old := c.startEngine(c.store)
		run := c.beginRun("r")
		queued := c.startRun("r2", runtime.StartRequest{Thread: "t", Graph: "g", Concurrency: runtime.EnqueueBusy, Request: newInput("r2")})
		next := c.startEngine(c.store)
		sleepVirtual(time.Second)
		began := time.Now()
		old.Drain(contextWithTimeout(t, time.Minute))
		require.Equal(t, 9*time.Second, time.Since(began), "as long as the superstep takes")
		require.Len(t, work.spans, 1)
		require.False(t, work.spans[0].isCut)
		_, err := old.Start(t.Context(), runtime.StartRequest{Thread: "u", CreateThread: true, Graph: "g", Request: newInput("x")})
		require.Equal(t, runtime.ReasonServerDraining, errorReason(err))

		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Less(t, time.Since(began), 13*time.Second, "no server waits for the lease")
		require.Len(t, work.spans, 1, "what was finished is not run again")
		r, err = next.WaitRun(t.Context(), "t", queued.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Equal(t, []string{
			"run running by starter of r", "run queued by starter of r2", "run succeeded", "run running by starter of r2", "run succeeded",
		}, c.summarizeThread("t").States)
	})
}

// TestDrainStopsBetweenSuperstepsOfSubgraphs drains while a graph in a graph has
// two supersteps ahead of it. One that is kept goes on elsewhere where it stopped;
// one that is not runs to its end.
func TestDrainStopsBetweenSuperstepsOfSubgraphs(t *testing.T) {
	for persistence, took := range map[string]time.Duration{"inherit": 9 * time.Second, "persist": 9 * time.Second, "disabled": 19 * time.Second} {
		t.Run(persistence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBubbleCluster(t)
				var first, second, last nodeTimeline
				c.nodes.funcs = map[string]nodeFunc{
					"work": first.newNode(10 * time.Second), "slow": second.newNode(10 * time.Second), "last": last.newNode(time.Second),
				}
				outer := chainSpec("g", channelsLog, "last")
				outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: "sub", Graph: &graph.SubgraphSpec{Name: "middle"}})
				outer.Edges = []graph.EdgeSpec{newEdge(graph.Start, "sub"), newEdge("sub", "last"), newEdge("last", graph.End)}
				middle := chainSpec("middle", channelsLog)
				middle.Nodes = []graph.NodeSpec{{Name: "deep", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: persistence}}}
				middle.Edges = []graph.EdgeSpec{newEdge(graph.Start, "deep"), newEdge("deep", graph.End)}
				c.compileGraphs(chainSpec("inner", channelsLog, "work", "slow"), middle, outer)
				old := c.startEngine(c.store)
				run := c.beginRun("r")
				sleepVirtual(time.Second)
				began := time.Now()
				old.Drain(contextWithTimeout(t, time.Minute))
				require.Equal(t, took, time.Since(began))

				next := c.startEngine(c.store)
				r, err := next.WaitRun(t.Context(), "t", run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				for _, ran := range []*nodeTimeline{&first, &second, &last} {
					require.Len(t, ran.spans, 1, "what was finished is not run again")
				}
				require.JSONEq(t, `{"log":["r","r","r","work","slow","last"],"n":3}`, string(r.Output))
			})
		})
	}
}

// TestDrainWaitsForTheSiblingsOfASubgraph has a node run on beside a graph that
// stops.
func TestDrainWaitsForTheSiblingsOfASubgraph(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var first, second, beside nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{
			"work": first.newNode(5 * time.Second), "slow": second.newNode(5 * time.Second), "quick": beside.newNode(8 * time.Second), "join": beside.newNode(0),
		}
		outer := parallelSpec("g", "quick")
		outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner"}})
		outer.Edges = []graph.EdgeSpec{
			newEdge(graph.Start, "sub"), newEdge(graph.Start, "quick"), {From: []string{"sub", "quick"}, To: "join"}, newEdge("join", graph.End),
		}
		c.compileGraphs(chainSpec("inner", channelsLog, "work", "slow"), outer)
		old := c.startEngine(c.store)
		run := c.beginRun("r")
		sleepVirtual(time.Second)
		began := time.Now()
		old.Drain(contextWithTimeout(t, time.Minute))
		require.Equal(t, 7*time.Second, time.Since(began))
		next := c.startEngine(c.store)
		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Len(t, first.spans, 1)
		require.Len(t, second.spans, 1)
		require.Len(t, beside.spans, 2, "the sibling runs once, the join once")
	})
}

func TestDrainCutsALongNodeAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var slow, quick nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"slow": slow.newNode(10 * time.Minute), "quick": quick.newNode(time.Second), "join": quick.newNode(0)}
		c.compileGraphs(parallelSpec("g", "slow", "quick"))
		old := c.startEngine(c.store)
		run := c.beginRun("r")
		sleepVirtual(2 * time.Second)
		began := time.Now()
		old.Drain(contextWithTimeout(t, 20*time.Second))
		require.Equal(t, 20*time.Second, time.Since(began))
		require.True(t, slow.spans[0].isCut)
		head, err := c.store.Head(t.Context(), "t")
		require.NoError(t, err)
		require.Empty(t, head.Owner, "the lease is given back")
		next := c.startEngine(c.store)
		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Len(t, slow.spans, 2)
		require.Len(t, quick.spans, 2, "the finished sibling runs once, the join once")
	})
}

func TestDrainDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var work nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": work.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work"))
		c.faulty.mode = faultHanging
		old := c.startEngine(c.faulty)
		run := c.beginRun("r")
		c.faulty.failAt.Store(c.faulty.callCount.Load() + 1)
		began := time.Now()
		old.Drain(contextWithTimeout(t, 5*time.Second))
		require.LessOrEqual(t, time.Since(began), 8*time.Second)
		next := c.startEngine(c.store)
		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	})
}

func TestAnswersAreTakenWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.compileGraphs(chainSpec("g", channelsLog, "ask"))
		old := c.startEngine(c.store)
		q := c.runToInterrupt("t")
		old.Close()
		require.NoError(t, c.answerInterrupt("t", q.ID, `"late"`, runtime.CoverPartial), "an answer is stored, for the next owner")
		next := c.startEngine(c.store)
		r, err := next.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	})
}

func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		e := c.startEngine(c.store)
		select {
		case <-e.Draining():
			t.Fatal("no request asked for it")
		default:
		}
		got := callTogether(4, func(int) error { e.Close(); return nil })
		require.Equal(t, 4, got[""])
		e.Close()
		<-e.Draining()
	})
}

func TestFollowersLearnOfTheHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		var times nodeTimeline
		c.nodes.funcs = map[string]nodeFunc{"work": times.newNode(time.Second), "last": times.newNode(time.Second)}
		c.compileGraphs(chainSpec("g", channelsLog, "work", "last"))
		c.opts.PollInterval = 100 * time.Millisecond
		owner := c.startEngine(c.store)
		other := c.startEngine(c.store)
		c.engine = owner
		run := c.beginRun("r")
		here, there := owner.Follow(runtime.FollowRequest{Thread: "t"}), other.Follow(runtime.FollowRequest{Thread: "t"})
		defer here.Close()
		defer there.Close()
		owner.Close()
		for _, f := range []*feed.Follower{here, there} {
			var seen uint64
			for ended := false; !ended; {
				events, err := f.Next(t.Context())
				require.NoError(t, err)
				for _, e := range events {
					require.Equal(t, seen+1, e.Seq, "a gap or a repetition")
					seen = e.Seq
					ended = ended || (e.Kind == checkpoint.EventRunState && e.State == checkpoint.RunSucceeded)
				}
			}
		}
		require.Equal(t, checkpoint.RunSucceeded, c.readRun("t", run.ID).State)
	})
}

// TestParkedThreadsCostNothing counts what is left of many threads that wait.
func TestParkedThreadsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBubbleCluster(t)
		c.nodes.funcs = crashNodes(c.nodes.ledger)
		c.compileGraphs(chainSpec("g", channelsLog, "ask"))
		e := c.startEngine(c.store)
		c.runToInterrupt("warm")
		sleepVirtual(time.Minute)
		before := goruntime.NumGoroutine()
		const threads = 200
		for i := range threads {
			c.runToInterrupt(fmt.Sprint("t", i))
		}
		sleepVirtual(time.Minute)
		require.Less(t, goruntime.NumGoroutine(), before+threads/10, "Go may have begun a few of its own")
		sessions, topics, drifting := engine.CountHeld(e)
		require.Zero(t, sessions)
		require.Zero(t, topics)
		require.Zero(t, drifting)
	})
}
