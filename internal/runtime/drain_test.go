package runtime_test

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
)

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestDrainFinishesTheSuperstepAndHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var work, last timeline
		c.nodes.code = map[string]node{"work": work.node(10 * time.Second), "last": last.node(time.Second)}
		c.compile(chain("g", channelsLog, "work", "last"))
		old := c.boot(c.store)
		run := c.begin("r")
		queued := c.start("r2", runtime.StartRequest{Thread: "t", Graph: "g", Concurrency: runtime.Enqueue, Request: input("r2")})
		next := c.boot(c.store)
		rest(time.Second)
		began := time.Now()
		old.Drain(deadline(t, time.Minute))
		require.Equal(t, 9*time.Second, time.Since(began), "as long as the superstep takes")
		require.Len(t, work.spans, 1)
		require.False(t, work.spans[0].cut)
		_, err := old.Start(t.Context(), runtime.StartRequest{Thread: "u", CreateThread: true, Graph: "g", Request: input("x")})
		require.Equal(t, runtime.ReasonServerDraining, reason(err))

		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Less(t, time.Since(began), 13*time.Second, "nobody waits for the lease")
		require.Len(t, work.spans, 1, "what was finished is not run again")
		r, err = next.WaitRun(t.Context(), "t", queued.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Equal(t, []string{"run running", "run queued", "run succeeded", "run running", "run succeeded"}, c.story("t").States)
	})
}

// TestDrainStopsBetweenSuperstepsOfSubgraphs drains while a graph in a graph has
// two supersteps ahead of it. One that is kept goes on elsewhere where it stopped;
// one that is not runs to its end.
func TestDrainStopsBetweenSuperstepsOfSubgraphs(t *testing.T) {
	for persistence, took := range map[string]time.Duration{"inherit": 9 * time.Second, "persist": 9 * time.Second, "disabled": 19 * time.Second} {
		t.Run(persistence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := alone(t)
				var first, second, last timeline
				c.nodes.code = map[string]node{
					"work": first.node(10 * time.Second), "slow": second.node(10 * time.Second), "last": last.node(time.Second),
				}
				outer := chain("g", channelsLog, "last")
				outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: "sub", Graph: &graph.SubgraphSpec{Name: "middle"}})
				outer.Edges = []graph.EdgeSpec{edge(graph.Start, "sub"), edge("sub", "last"), edge("last", graph.End)}
				middle := chain("middle", channelsLog)
				middle.Nodes = []graph.NodeSpec{{Name: "deep", Graph: &graph.SubgraphSpec{Name: "inner", Persistence: persistence}}}
				middle.Edges = []graph.EdgeSpec{edge(graph.Start, "deep"), edge("deep", graph.End)}
				c.compile(chain("inner", channelsLog, "work", "slow"), middle, outer)
				old := c.boot(c.store)
				run := c.begin("r")
				rest(time.Second)
				began := time.Now()
				old.Drain(deadline(t, time.Minute))
				require.Equal(t, took, time.Since(began))

				next := c.boot(c.store)
				r, err := next.WaitRun(t.Context(), "t", run.ID)
				require.NoError(t, err)
				require.Equal(t, checkpoint.RunSucceeded, r.State)
				for _, ran := range []*timeline{&first, &second, &last} {
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
		c := alone(t)
		var first, second, beside timeline
		c.nodes.code = map[string]node{
			"work": first.node(5 * time.Second), "slow": second.node(5 * time.Second), "quick": beside.node(8 * time.Second), "join": beside.node(0),
		}
		outer := side("g", "quick")
		outer.Nodes = append(outer.Nodes, graph.NodeSpec{Name: "sub", Graph: &graph.SubgraphSpec{Name: "inner"}})
		outer.Edges = []graph.EdgeSpec{
			edge(graph.Start, "sub"), edge(graph.Start, "quick"), {From: []string{"sub", "quick"}, To: "join"}, edge("join", graph.End),
		}
		c.compile(chain("inner", channelsLog, "work", "slow"), outer)
		old := c.boot(c.store)
		run := c.begin("r")
		rest(time.Second)
		began := time.Now()
		old.Drain(deadline(t, time.Minute))
		require.Equal(t, 7*time.Second, time.Since(began))
		next := c.boot(c.store)
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
		c := alone(t)
		var slow, quick timeline
		c.nodes.code = map[string]node{"slow": slow.node(10 * time.Minute), "quick": quick.node(time.Second), "join": quick.node(0)}
		c.compile(side("g", "slow", "quick"))
		old := c.boot(c.store)
		run := c.begin("r")
		rest(2 * time.Second)
		began := time.Now()
		old.Drain(deadline(t, 20*time.Second))
		require.Equal(t, 20*time.Second, time.Since(began))
		require.True(t, slow.spans[0].cut)
		head, err := c.store.Head(t.Context(), "t")
		require.NoError(t, err)
		require.Empty(t, head.Owner, "the lease is given back")
		next := c.boot(c.store)
		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
		require.Len(t, slow.spans, 2)
		require.Len(t, quick.spans, 2, "the finished sibling runs once, the join once")
	})
}

func TestDrainDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var work timeline
		c.nodes.code = map[string]node{"work": work.node(time.Second)}
		c.compile(chain("g", channelsLog, "work"))
		c.first.mode = hanging
		old := c.boot(c.first)
		run := c.begin("r")
		c.first.at.Store(c.first.n.Load() + 1)
		began := time.Now()
		old.Drain(deadline(t, 5*time.Second))
		require.LessOrEqual(t, time.Since(began), 8*time.Second)
		next := c.boot(c.store)
		r, err := next.WaitRun(t.Context(), "t", run.ID)
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	})
}

func TestAnswersAreTakenWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		c.nodes.code = script(c.nodes.ledger)
		c.compile(chain("g", channelsLog, "ask"))
		old := c.boot(c.store)
		q := c.asking("t")
		old.Close()
		require.NoError(t, c.respond("t", q.ID, `"late"`, runtime.Partial), "an answer is stored, for whoever comes next")
		next := c.boot(c.store)
		r, err := next.WaitRun(t.Context(), "t", "")
		require.NoError(t, err)
		require.Equal(t, checkpoint.RunSucceeded, r.State)
	})
}

func TestCloseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		e := c.boot(c.store)
		select {
		case <-e.Draining():
			t.Fatal("nobody asked for it")
		default:
		}
		got := crowd(4, func(int) error { e.Close(); return nil })
		require.Equal(t, 4, got[""])
		e.Close()
		<-e.Draining()
	})
}

func TestFollowersLearnOfTheHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		var times timeline
		c.nodes.code = map[string]node{"work": times.node(time.Second), "last": times.node(time.Second)}
		c.compile(chain("g", channelsLog, "work", "last"))
		c.opts.Poll = 100 * time.Millisecond
		owner := c.boot(c.store)
		other := c.boot(c.store)
		c.engine = owner
		run := c.begin("r")
		here, there := owner.Follow(runtime.FollowRequest{Thread: "t"}), other.Follow(runtime.FollowRequest{Thread: "t"})
		defer here.Close()
		defer there.Close()
		owner.Close()
		for _, f := range []*runtime.Follower{here, there} {
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
		require.Equal(t, checkpoint.RunSucceeded, c.run("t", run.ID).State)
	})
}

// TestParkedThreadsCostNothing counts what is left of many threads that wait.
func TestParkedThreadsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := alone(t)
		c.nodes.code = script(c.nodes.ledger)
		c.compile(chain("g", channelsLog, "ask"))
		e := c.boot(c.store)
		c.asking("warm")
		rest(time.Minute)
		before := goruntime.NumGoroutine()
		const threads = 200
		for i := range threads {
			c.asking(fmt.Sprint("t", i))
		}
		rest(time.Minute)
		require.Less(t, goruntime.NumGoroutine(), before+threads/10, "Go may have begun a few of its own")
		sessions, topics, drifting := runtime.Held(e)
		require.Zero(t, sessions)
		require.Zero(t, topics)
		require.Zero(t, drifting)
	})
}
