package runtime_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// drama is a graph with the acts of its clients.
type drama struct {
	name  string
	specs func() []*graph.Spec
	play  func(c *cluster)
	// timing says that it depends on time whether the run pauses.
	timing bool
}

var channelsLog = []graph.ChannelSpec{{Name: "log", Reducer: "append"}, {Name: "n", Reducer: "add"}}

func wrote(what string) pregel.Result {
	return pregel.Result{Update: payload.JSON(`{"log":[` + what + `],"n":1}`)}
}

// script is the code of all nodes of the dramas.
func script(l *ledger) map[string]node {
	quick := func(_ context.Context, c *call) pregel.Result { return wrote(`"` + c.Node.Name + `"`) }
	slow := func(ctx context.Context, c *call) pregel.Result {
		if doing(ctx, 3*time.Second) != nil {
			return fail("cut off")
		}
		return quick(ctx, c)
	}
	ask := func(_ context.Context, c *call) pregel.Result { return wrote(c.ask(`"` + c.Node.Name + `?"`)) }
	pay := func(ctx context.Context, c *call) pregel.Result {
		receipt, err := c.memo(ctx, l, "pay")
		if err != nil {
			return fail(err.Error())
		}
		if c.Attempt == 1 {
			return fail("flaky after paying")
		}
		answer := c.ask(`"paid?"`)
		mail, err := c.memo(ctx, l, "mail")
		if err != nil {
			return fail(err.Error())
		}
		return wrote(receipt + "," + answer + "," + mail)
	}
	code := map[string]node{
		"quick": quick, "fast": quick, "join": quick, "last": quick, "rescue": quick,
		"slow": slow, "ask": ask, "ask2": ask, "inner": ask, "pay": pay,
		"broken": func(context.Context, *call) pregel.Result { return fail("broken") },
		"twice": func(_ context.Context, c *call) pregel.Result {
			return wrote(c.ask(`"first"`) + "," + c.ask(`"second"`))
		},
		"drifts": func(_ context.Context, c *call) pregel.Result {
			amount := `{"pay":100}`
			if len(c.Journal.Answers) > 0 {
				amount = `{"pay":99999}`
			}
			answer := c.ask(amount)
			return wrote(amount + "," + answer)
		},
		"restates": func(ctx context.Context, c *call) pregel.Result {
			called, err := c.Host.Call(ctx, runtime.GraphCall{Graph: "called", Input: "{}"})
			for err != nil { // the store is away, and the caller calls again
				if doing(ctx, time.Second) != nil {
					return fail("cut off")
				}
				called, err = c.Host.Call(ctx, runtime.GraphCall{Graph: "called", Input: "{}"})
			}
			q := pregel.Ask{Value: `{"pay":100}`}
			if called.Waiting == nil {
				q.Value = `{"pay":99999}`
			}
			q.Settle(c.Graph.Spec)
			for i := range c.Journal.Answers {
				if a := &c.Journal.Answers[i]; a.Fits(&q) && called.Waiting == nil {
					return wrote(string(q.Value) + "," + string(a.Value))
				}
			}
			return pregel.Result{Asks: []pregel.Ask{q}, Waiting: called.Waiting}
		},
		"fan": func(context.Context, *call) pregel.Result {
			r := wrote(`"fan"`)
			for i := range 3 {
				r.Goto = append(r.Goto, checkpoint.Send{Node: "worker", Input: payload.JSON(fmt.Sprintf(`{"i":%d}`, i))})
			}
			return r
		},
		"worker": func(ctx context.Context, c *call) pregel.Result {
			if c.get("i") == "1" {
				return wrote(c.ask(`"worker 1?"`))
			}
			if doing(ctx, time.Duration(number(c.get("i")))*time.Second) != nil {
				return fail("cut off")
			}
			return wrote(c.get("i"))
		},
	}
	return code
}

// fork makes a graph that runs nodes side by side and joins them in "join".
func side(name string, names ...string) *graph.Spec {
	s := &graph.Spec{Name: name, Channels: channelsLog, Nodes: []graph.NodeSpec{function("join")}}
	for _, n := range names {
		s.Nodes = append(s.Nodes, function(n))
		s.Edges = append(s.Edges, edge(graph.Start, n))
	}
	s.Edges = append(s.Edges, graph.EdgeSpec{From: names, To: "join"}, edge("join", graph.End))
	return s
}

func nested(persistence string) func() []*graph.Spec { return nestedAround(persistence, "inner") }

// nestedAround makes a graph with another one in it, in which a node asks.
func nestedAround(persistence, asks string) func() []*graph.Spec {
	return func() []*graph.Spec {
		inner := chain("inner-graph", channelsLog, "quick", asks, "last")
		name := "kept"
		if persistence == "disabled" {
			name = "unkept"
		}
		outer := &graph.Spec{
			Name: "g", Channels: channelsLog, Nodes: []graph.NodeSpec{
				{Name: name, Graph: &graph.SubgraphSpec{Name: "inner-graph", Persistence: persistence}},
				function("slow"), function("join"),
			}, Edges: []graph.EdgeSpec{
				edge(graph.Start, name), edge(graph.Start, "slow"),
				{From: []string{name, "slow"}, To: "join"},
				edge("join", graph.End),
			},
		}
		return []*graph.Spec{inner, outer}
	}
}

// computed makes expressions of the nodes of a graph that only compute, and of
// others.
func computed(s *graph.Spec, others ...string) *graph.Spec {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; slices.Contains(append(others, "quick", "fast", "join", "last"), n.Name) {
			n.Function, n.Expr = nil, &graph.ExprSpec{}
		}
	}
	return s
}

func one(s *graph.Spec) func() []*graph.Spec { return func() []*graph.Spec { return []*graph.Spec{s} } }

// begin starts a run of graph g on thread t.
func (c *cluster) begin(name string) checkpoint.Run {
	c.t.Helper()
	return c.start(name, runtime.StartRequest{
		Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":["` + payload.JSON(name) + `"]}`},
	})
}

func toTheEnd(most int) func(c *cluster) {
	return func(c *cluster) { c.finish(c.begin("r"), most) }
}

func dramas() []drama {
	retried := side("g", "pay", "fast")
	retried.Defaults.Retry = []graph.RetrySpec{{NoJitter: true}}
	rescued := side("g", "broken", "slow", "ask")
	rescued.Nodes = append(rescued.Nodes, function("rescue"))
	rescued.Edges = append(rescued.Edges, edge("rescue", graph.End))
	rescued.Nodes[1].Policy.ErrorHandler = "rescue"
	rescued.Edges[3] = graph.EdgeSpec{From: []string{"slow", "ask"}, To: "join"}
	fan := &graph.Spec{
		Name: "g", Channels: channelsLog, Nodes: []graph.NodeSpec{function("fan"), function("worker"), function("last")},
		Edges: []graph.EdgeSpec{edge(graph.Start, "fan"), edge("worker", "last"), edge("last", graph.End)},
	}
	fan.Nodes[0].Destinations = []string{"worker"}
	paused := chain("g", channelsLog, "quick", "fast", "last")
	paused.InterruptBefore, paused.InterruptAfter = []string{"fast"}, []string{"fast"}
	return []drama{
		{"another question than was answered", one(chain("g", channelsLog, "quick", "drifts", "last")), toTheEnd(9), false},
		{"another question side by side", one(side("g", "slow", "drifts", "ask")), toTheEnd(9), false},
		{"another question in a subgraph", nestedAround("inherit", "drifts"), toTheEnd(9), false},
		{"another question in a subgraph that is not kept", nestedAround("disabled", "drifts"), toTheEnd(9), false},
		{"another question than is open", func() []*graph.Spec {
			return []*graph.Spec{chain("called", channelsLog, "inner"), chain("g", channelsLog, "quick", "restates", "last")}
		}, toTheEnd(1), false},
		{"a line", one(chain("g", channelsLog, "quick", "fast", "last")), toTheEnd(9), false},
		{"expressions that ask", one(computed(chain("g", channelsLog, "quick", "ask", "fast", "twice", "last"), "ask", "twice")), toTheEnd(9), false},
		{"expressions that ask side by side", one(computed(side("g", "ask", "fast", "ask2"), "ask", "ask2")), toTheEnd(9), false},
		{"expressions around a question", one(computed(chain("g", channelsLog, "quick", "fast", "ask", "join", "last"))), toTheEnd(9), false},
		{"two questions in a node", one(chain("g", channelsLog, "quick", "twice", "last")), toTheEnd(9), false},
		{"side by side", one(side("g", "fast", "slow", "ask", "ask2")), toTheEnd(9), false},
		{"answered one by one", one(side("g", "fast", "ask", "ask2")), toTheEnd(1), false},
		{"memos and retries", one(retried), toTheEnd(9), false},
		{"an error handler", one(rescued), toTheEnd(9), false},
		{"sends", one(fan), toTheEnd(9), false},
		{"breakpoints", one(paused), toTheEnd(9), false},
		{"a subgraph", nested("inherit"), toTheEnd(9), false},
		{"a persistent subgraph, twice", nested("persist"), func(c *cluster) {
			c.finish(c.begin("r"), 9)
			c.finish(c.begin("r2"), 9)
		}, false},
		{"a subgraph that is not kept", nested("disabled"), toTheEnd(9), false},
		{"answered while a sibling runs", one(side("g", "slow", "ask")), func(c *cluster) {
			r := c.begin("r")
			for range 50 {
				if c.reply(r, "early", 1) {
					break
				}
				rest(100 * time.Millisecond)
			}
			c.finish(r, 9)
		}, true},
		{"a queue", one(side("g", "fast", "ask")), func(c *cluster) {
			r := c.begin("r")
			c.wait(r)
			r2 := c.start("r2", runtime.StartRequest{
				Thread: "t", Graph: "g", Open: runtime.EnqueueOpen,
				Request: checkpoint.RunRequest{Input: `{"log":["r2"]}`},
			})
			c.finish(r, 9)
			c.finish(r2, 9)
		}, false},
		{"a waiting run is cancelled and rolled back", one(side("g", "fast", "ask")), func(c *cluster) {
			c.finish(c.begin("r"), 9)
			r := c.begin("r2")
			c.wait(r)
			c.insist(func(ctx context.Context, e *runtime.Engine) error {
				_, err := e.Cancel(ctx, runtime.CancelRequest{Thread: "t", Run: r.ID, Rollback: true})
				return err
			})
			c.finish(c.begin("r3"), 9)
		}, false},
		{"a replay", nested("inherit"), func(c *cluster) {
			c.finish(c.begin("r"), 9)
			old, err := c.store.Checkpoints(context.Background(), checkpoint.CheckpointQuery{Thread: "t"})
			require.NoError(c.t, err)
			c.finish(c.start("r2", runtime.StartRequest{
				Thread: "t", Graph: "g",
				Request: checkpoint.RunRequest{From: old[2].ID},
			}), 9)
		}, false},
		{"discarded questions", one(side("g", "fast", "ask")), func(c *cluster) {
			c.wait(c.begin("r"))
			c.finish(c.start("r2", runtime.StartRequest{
				Thread: "t", Graph: "g", Open: runtime.DiscardOpen,
				Request: checkpoint.RunRequest{Input: `{"log":["r2"]}`},
			}), 9)
		}, false},
	}
}

// perform plays a drama with a fault and tells its story, and how many calls
// the first process made.
func (d *drama) perform(t *testing.T, store checkpoint.Store, at int64, m mode) (story, int64) {
	t.Helper()
	c := newCluster(t, store, at, m)
	defer c.close()
	c.nodes.code = script(c.nodes.ledger)
	c.compile(d.specs()...)
	c.boot(c.first)
	d.play(c)
	s := c.story("t")
	// Whether a run waits for its turn for a moment depends on how soon the
	// one before has let go of the thread.
	s.States = slices.DeleteFunc(s.States, func(line string) bool { return line == "run queued" })
	if d.timing {
		s.States = slices.DeleteFunc(s.States, func(line string) bool {
			return line == "run interrupted" || line == "run running"
		})
	}
	require.Empty(t, c.nodes.ledger.wrong)
	return s, c.first.n.Load()
}

// crashEvery says at which store calls faults are tried; `make crash` tries all.
var crashEvery = flag.Int64("crash-every", 11, "let each n-th store call of each drama fail, 1 = all")

// TestCrash lets store calls of every drama fail in every way, and expects the
// same story as without a fault.
func TestCrash(t *testing.T) {
	for i, d := range dramas() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, &d, i, *crashEvery, func(*testing.T) checkpoint.Store { return memory.New(memory.Options{}) })
		})
	}
}

// TestCrashOnDisk is the short form over the embedded store.
func TestCrashOnDisk(t *testing.T) {
	for i, d := range dramas() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, &d, i, 5**crashEvery, func(t *testing.T) checkpoint.Store {
				t.Helper()
				s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db")})
				require.NoError(t, err)
				return s
			})
		})
	}
}

// crashEverywhere tries each stride-th call. Which one is the first differs by
// drama and by the way of failing, so that all places have their turn.
func crashEverywhere(t *testing.T, d *drama, number int, stride int64, open func(t *testing.T) checkpoint.Store) {
	t.Helper()
	want, calls := d.alone(t, open, 0, refused)
	require.NotEmpty(t, want.Runs)
	points := 0
	for j, m := range modes {
		for k := 1 + int64(number*2+j*3)%stride; k <= calls; k += stride {
			points++
			got, _ := d.alone(t, open, k, m)
			require.Equal(t, want, got, "call %d of %d: %s", k, calls, m)
		}
	}
	t.Logf("%d points", points)
}

// alone performs on a store of its own, in a bubble with a time of its own.
func (d *drama) alone(t *testing.T, open func(t *testing.T) checkpoint.Store, at int64, m mode) (got story, calls int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		got, calls = d.perform(t, s, at, m)
		require.NoError(t, s.Close())
	})
	return got, calls
}
