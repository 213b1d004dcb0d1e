package engine_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/engine"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// crashCase is a graph and what its clients do.
type crashCase struct {
	name  string
	specs func() []*graph.Spec
	drive func(c *cluster)
	// isTimingDependent says that it depends on time whether the run pauses, or is asked to
	// stop before it has.
	isTimingDependent bool
}

var channelsLog = []graph.ChannelSpec{{Name: "log", Reducer: "append"}, {Name: "n", Reducer: "add"}}

func logUpdate(what string) pregel.Result {
	return pregel.Result{Update: payload.JSON(`{"log":[` + what + `],"n":1}`)}
}

// crashNodes returns the code of all nodes of the crash cases.
func crashNodes(l *effectLedger) map[string]nodeFunc {
	quick := func(_ context.Context, c *nodeCall) pregel.Result { return logUpdate(`"` + c.Node.Name + `"`) }
	slow := func(ctx context.Context, c *nodeCall) pregel.Result {
		if workFor(ctx, 3*time.Second) != nil {
			return failedResult("cut off")
		}
		return quick(ctx, c)
	}
	ask := func(_ context.Context, c *nodeCall) pregel.Result {
		return logUpdate(c.askNext(`"` + c.Node.Name + `?"`))
	}
	pay := func(ctx context.Context, c *nodeCall) pregel.Result {
		receipt, err := c.recordEffect(ctx, l, "pay")
		if err != nil {
			return failedResult(err.Error())
		}
		if c.Attempt == 1 {
			return failedResult("flaky after paying")
		}
		answer := c.askNext(`"paid?"`)
		mail, err := c.recordEffect(ctx, l, "mail")
		if err != nil {
			return failedResult(err.Error())
		}
		return logUpdate(receipt + "," + answer + "," + mail)
	}
	both := func(_ context.Context, c *nodeCall) pregel.Result {
		return logUpdate(c.askPeople(`"both?"`, &approval.Policy{Approvals: 2}))
	}
	secretive := func(_ context.Context, c *nodeCall) pregel.Result {
		q := pregel.Ask{Value: `{"card":"4111"}`, Secret: []string{"/card", "/0/card"}}
		if err := q.HideSecrets(); err != nil {
			return failedResult(err.Error())
		}
		q.SetDriftDefaults(c.Graph.Spec)
		for i := range c.Journal.Answers {
			if a := &c.Journal.Answers[i]; a.Matches(&q) {
				return logUpdate(string(a.Value))
			}
		}
		return pregel.Result{Asks: []pregel.Ask{q}}
	}
	code := map[string]nodeFunc{
		"secretive": secretive, "both": both, "quick": quick, "fast": quick, "join": quick, "last": quick, "rescue": quick,
		"slow": slow, "ask": ask, "ask2": ask, "inner": ask, "pay": pay,
		"broken": func(context.Context, *nodeCall) pregel.Result { return failedResult("broken") },
		"twice": func(_ context.Context, c *nodeCall) pregel.Result {
			return logUpdate(c.askNext(`"first"`) + "," + c.askNext(`"second"`))
		},
		"drifts": func(_ context.Context, c *nodeCall) pregel.Result {
			amount := `{"pay":100}`
			if len(c.Journal.Answers) > 0 {
				amount = `{"pay":99999}`
			}
			answer := c.askNext(amount)
			return logUpdate(amount + "," + answer)
		},
		"accepts": func(_ context.Context, c *nodeCall) pregel.Result {
			q := pregel.Ask{Value: `{"pay":100}`, Drift: checkpoint.DriftAccept}
			if len(c.Journal.Answers) == 0 {
				return pregel.Result{Asks: []pregel.Ask{q}}
			}
			q.Value = `{"pay":99999}`
			r := logUpdate(string(q.Value) + "," + string(c.Journal.Answers[0].Value))
			r.UsedAnswers = []pregel.UsedAnswer{{AskedDigest: q.ShownDigest(), Asked: &q}}
			return r
		},
		"delegable": func(_ context.Context, c *nodeCall) pregel.Result {
			return logUpdate(c.askPeople(`"delegable?"`, &approval.Policy{Users: []string{ana.Name}, Delegable: true}))
		},
		"exclusive": func(_ context.Context, c *nodeCall) pregel.Result {
			return logUpdate(c.askPeople(`"exclusive?"`, &approval.Policy{Exclusive: true}))
		},
		"restates": func(ctx context.Context, c *nodeCall) pregel.Result {
			called, err := c.Host.CallGraph(ctx, runtime.GraphCall{Graph: "called", Input: "{}"})
			for err != nil { // the store is away, and the caller calls again
				if workFor(ctx, time.Second) != nil {
					return failedResult("cut off")
				}
				called, err = c.Host.CallGraph(ctx, runtime.GraphCall{Graph: "called", Input: "{}"})
			}
			q := pregel.Ask{Value: `{"pay":100}`}
			if called.Waiting == nil {
				q.Value = `{"pay":99999}`
			}
			q.SetDriftDefaults(c.Graph.Spec)
			for i := range c.Journal.Answers {
				if a := &c.Journal.Answers[i]; a.Matches(&q) && called.Waiting == nil {
					return logUpdate(string(q.Value) + "," + string(a.Value))
				}
			}
			return pregel.Result{Asks: []pregel.Ask{q}, WaitingInterrupts: called.Waiting}
		},
		"fan": func(context.Context, *nodeCall) pregel.Result {
			r := logUpdate(`"fan"`)
			for i := range 3 {
				r.Goto = append(r.Goto, checkpoint.Send{Node: "worker", Input: payload.JSON(fmt.Sprintf(`{"i":%d}`, i))})
			}
			return r
		},
		"worker": func(ctx context.Context, c *nodeCall) pregel.Result {
			if c.stateText("i") == "1" {
				return logUpdate(c.askNext(`"worker 1?"`))
			}
			if workFor(ctx, time.Duration(parseNumber(c.stateText("i")))*time.Second) != nil {
				return failedResult("cut off")
			}
			return logUpdate(c.stateText("i"))
		},
	}
	return code
}

// timedNodes returns the code of the nodes of the crash cases whose questions change by
// themselves.
func timedNodes(times clusterTimes) map[string]nodeFunc {
	return map[string]nodeFunc{
		"undoable": undoableNode(times.undo, nil), "slip": undoableNode(times.slip, nil), "stepped": steppedNode(times.step),
	}
}

// parallelSpec makes a graph that runs nodes side by side and joins them in "join".
func parallelSpec(name string, names ...string) *graph.Spec {
	s := &graph.Spec{Name: name, Channels: channelsLog, Nodes: []graph.NodeSpec{functionNode("join")}}
	for _, n := range names {
		s.Nodes = append(s.Nodes, functionNode(n))
		s.Edges = append(s.Edges, newEdge(graph.Start, n))
	}
	s.Edges = append(s.Edges, graph.EdgeSpec{From: names, To: "join"}, newEdge("join", graph.End))
	return s
}

func nestedSpecs(persistence string) func() []*graph.Spec {
	return nestedSpecsAround(persistence, "inner")
}

// nestedSpecsAround makes a graph with another one in it, in which a node asks.
func nestedSpecsAround(persistence, asks string) func() []*graph.Spec {
	return func() []*graph.Spec {
		inner := chainSpec("inner-graph", channelsLog, "quick", asks, "last")
		name := "kept"
		if persistence == "disabled" {
			name = "unkept"
		}
		outer := &graph.Spec{
			Name: "g", Channels: channelsLog, Nodes: []graph.NodeSpec{
				{Name: name, Graph: &graph.SubgraphSpec{Name: "inner-graph", Persistence: persistence}},
				functionNode("slow"), functionNode("join"),
			}, Edges: []graph.EdgeSpec{
				newEdge(graph.Start, name), newEdge(graph.Start, "slow"),
				{From: []string{name, "slow"}, To: "join"},
				newEdge("join", graph.End),
			},
		}
		return []*graph.Spec{inner, outer}
	}
}

// withExpressions makes expressions of the nodes of a graph that only compute, and of
// others.
func withExpressions(s *graph.Spec, others ...string) *graph.Spec {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; slices.Contains(append(others, "quick", "fast", "join", "last"), n.Name) {
			n.Function, n.Expr = nil, &graph.ExprSpec{}
		}
	}
	return s
}

// failOnDrift has the nodes of a graph fail that ask something else than was answered.
func failOnDrift(s *graph.Spec) *graph.Spec {
	s.Drift = graph.DriftFail
	return s
}

func singleSpec(s *graph.Spec) func() []*graph.Spec {
	return func() []*graph.Spec { return []*graph.Spec{s} }
}

// beginRun starts a run of graph g on thread t.
func (c *cluster) beginRun(name string) checkpoint.Run {
	c.t.Helper()
	return c.startRun(name, runtime.StartRequest{
		Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":["` + payload.JSON(name) + `"]}`},
	})
}

func runToEnd(most int) func(c *cluster) {
	return func(c *cluster) { c.answerToEnd(c.beginRun("r"), most) }
}

func crashCases() []crashCase {
	retried := parallelSpec("g", "pay", "fast")
	retried.Defaults.Retry = []graph.RetrySpec{{NoJitter: true}}
	rescued := parallelSpec("g", "broken", "slow", "ask")
	rescued.Nodes = append(rescued.Nodes, functionNode("rescue"))
	rescued.Edges = append(rescued.Edges, newEdge("rescue", graph.End))
	rescued.Nodes[1].Policy.ErrorHandler = "rescue"
	rescued.Edges[3] = graph.EdgeSpec{From: []string{"slow", "ask"}, To: "join"}
	fan := &graph.Spec{
		Name: "g", Channels: channelsLog, Nodes: []graph.NodeSpec{functionNode("fan"), functionNode("worker"), functionNode("last")},
		Edges: []graph.EdgeSpec{newEdge(graph.Start, "fan"), newEdge("worker", "last"), newEdge("last", graph.End)},
	}
	fan.Nodes[0].Destinations = []string{"worker"}
	paused := chainSpec("g", channelsLog, "quick", "fast", "last")
	paused.InterruptBefore, paused.InterruptAfter = []string{"fast"}, []string{"fast"}
	return []crashCase{
		{"another question than was answered", singleSpec(chainSpec("g", channelsLog, "quick", "drifts", "last")), runToEnd(9), false},
		{"another question side by side", singleSpec(parallelSpec("g", "slow", "drifts", "ask")), runToEnd(9), false},
		{"another question in a subgraph", nestedSpecsAround("inherit", "drifts"), runToEnd(9), false},
		{"another question in a subgraph that is not kept", nestedSpecsAround("disabled", "drifts"), runToEnd(9), false},
		{"another question than is open", func() []*graph.Spec {
			return []*graph.Spec{chainSpec("called", channelsLog, "inner"), chainSpec("g", channelsLog, "quick", "restates", "last")}
		}, runToEnd(1), false},
		{"another question that fails the run", singleSpec(failOnDrift(chainSpec("g", channelsLog, "quick", "drifts", "last"))), runToEnd(9), false},
		{"another question that fails the run side by side", singleSpec(failOnDrift(parallelSpec("g", "fast", "drifts"))), runToEnd(9), false},
		{"another question that is accepted", singleSpec(chainSpec("g", channelsLog, "quick", "accepts", "last")), runToEnd(9), false},
		{"another question that is accepted side by side", singleSpec(parallelSpec("g", "fast", "accepts", "ask")), runToEnd(1), false},
		{"another question that is accepted in a subgraph", nestedSpecsAround("inherit", "accepts"), runToEnd(9), false},
		{"a line", singleSpec(chainSpec("g", channelsLog, "quick", "fast", "last")), runToEnd(9), false},
		{"expressions that ask", singleSpec(withExpressions(chainSpec("g", channelsLog, "quick", "ask", "fast", "twice", "last"), "ask", "twice")), runToEnd(9), false},
		{"expressions that ask side by side", singleSpec(withExpressions(parallelSpec("g", "ask", "fast", "ask2"), "ask", "ask2")), runToEnd(9), false},
		{"expressions around a question", singleSpec(withExpressions(chainSpec("g", channelsLog, "quick", "fast", "ask", "join", "last"))), runToEnd(9), false},
		{"two questions in a node", singleSpec(chainSpec("g", channelsLog, "quick", "twice", "last")), runToEnd(9), false},
		{"side by side", singleSpec(parallelSpec("g", "fast", "slow", "ask", "ask2")), runToEnd(9), false},
		{"answered one by one", singleSpec(parallelSpec("g", "fast", "ask", "ask2")), runToEnd(1), false},
		{"memos and retries", singleSpec(retried), runToEnd(9), false},
		{"an error handler", singleSpec(rescued), runToEnd(9), false},
		{"sends", singleSpec(fan), runToEnd(9), false},
		{"breakpoints", singleSpec(paused), runToEnd(9), false},
		{"a subgraph", nestedSpecs("inherit"), runToEnd(9), false},
		{"a persistent subgraph, twice", nestedSpecs("persist"), func(c *cluster) {
			c.answerToEnd(c.beginRun("r"), 9)
			c.answerToEnd(c.beginRun("r2"), 9)
		}, false},
		{"a subgraph that is not kept", nestedSpecs("disabled"), runToEnd(9), false},
		{"answered while a sibling runs", singleSpec(parallelSpec("g", "slow", "ask")), func(c *cluster) {
			r := c.beginRun("r")
			for range 50 {
				if c.answerOpen(r, "early", 1) {
					break
				}
				sleepVirtual(100 * time.Millisecond)
			}
			c.answerToEnd(r, 9)
		}, true},
		{"a queue", singleSpec(parallelSpec("g", "fast", "ask")), func(c *cluster) {
			r := c.beginRun("r")
			c.waitRun(r)
			r2 := c.startRun("r2", runtime.StartRequest{
				Thread: "t", Graph: "g", Open: runtime.EnqueueOpen,
				Request: checkpoint.RunRequest{Input: `{"log":["r2"]}`},
			})
			c.answerToEnd(r, 9)
			c.answerToEnd(r2, 9)
		}, false},
		{"a run that begins later", singleSpec(chainSpec("g", channelsLog, "quick", "ask", "last")), func(c *cluster) {
			late := c.startRun("late", runtime.StartRequest{
				Thread: "t", Graph: "g", Request: checkpoint.RunRequest{Input: `{"log":["late"]}`, Delay: c.times.step},
			})
			c.answerToEnd(late, 9)
		}, false},
		{"a waiting run is cancelled and rolled back", singleSpec(parallelSpec("g", "fast", "ask")), func(c *cluster) {
			c.answerToEnd(c.beginRun("r"), 9)
			r := c.beginRun("r2")
			c.waitRun(r)
			c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
				_, err := e.Cancel(ctx, runtime.CancelRequest{Thread: "t", Run: r.ID, Rollback: true, By: eve})
				return err
			})
			c.answerToEnd(c.beginRun("r3"), 9)
		}, false},
		{"drained in a superstep that asks", singleSpec(parallelSpec("g", "slow", "ask")), func(c *cluster) {
			r := c.beginRun("r")
			sleepVirtual(time.Second)
			c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
				_, err := e.Cancel(ctx, runtime.CancelRequest{Thread: "t", Run: r.ID, Grace: checkpoint.DrainGrace, By: eve})
				return err
			})
			c.answerToEnd(r, 9)
		}, true},
		{"a replay", nestedSpecs("inherit"), func(c *cluster) {
			c.answerToEnd(c.beginRun("r"), 9)
			old, err := c.store.Checkpoints(context.Background(), checkpoint.CheckpointQuery{Thread: "t"})
			require.NoError(c.t, err)
			c.answerToEnd(c.startRun("r2", runtime.StartRequest{
				Thread: "t", Graph: "g",
				Request: checkpoint.RunRequest{From: old[2].ID},
			}), 9)
		}, false},
		{"two must agree", singleSpec(parallelSpec("g", "both", "ask")), func(c *cluster) {
			r := c.beginRun("r")
			c.waitRun(r)
			c.answerOpenAs(eve, r, "eve", 9)
			c.answerToEnd(r, 9)
		}, false},
		{"an answer that takes effect later", singleSpec(parallelSpec("g", "undoable", "ask")), runToEnd(9), true},
		{"an answer that is taken back", singleSpec(parallelSpec("g", "slip", "fast")), func(c *cluster) {
			r := c.beginRun("r")
			c.waitRun(r)
			c.answerOpenAs(ben, r, "slip", 9)
			list, err := c.store.Interrupts(context.Background(), checkpoint.InterruptQuery{Thread: "t", Node: "slip"})
			require.NoError(c.t, err)
			c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) error {
				_, err := e.RetractResponse(ctx, runtime.RetractRequest{Question: runtime.Question{Thread: "t", Interrupt: list[0].ID}, By: ben})
				return err
			})
			c.answerToEnd(r, 9)
		}, false},
		{"secret parts that are shown", singleSpec(parallelSpec("g", "secretive", "fast")), func(c *cluster) {
			r := c.beginRun("r")
			c.waitRun(r)
			c.revealAll("secretive")
			c.answerToEnd(r, 9)
			c.revealAll("secretive")
		}, false},
		{"a question that nobody answers", singleSpec(parallelSpec("g", "stepped", "fast")), func(c *cluster) {
			r := c.beginRun("r")
			c.waitRun(r)
			c.waitEnd(r)
		}, false},
		{"a question that is handed on", singleSpec(parallelSpec("g", "delegable", "fast")), handOnAndAnswer("delegable"), false},
		{"a question for everybody that is handed on", singleSpec(parallelSpec("g", "ask", "fast")), handOnAndAnswer("ask"), false},
		{"a claimed question", singleSpec(parallelSpec("g", "exclusive", "fast")), func(c *cluster) {
			r := c.beginRun("r")
			c.waitRun(r)
			c.claim(ben, c.findOpen("exclusive"))
			c.answerToEnd(r, 9)
			c.waitRun(c.beginRun("r2"))
			c.claim(ben, c.findOpen("exclusive"))
		}, false},
		{"discarded questions", singleSpec(parallelSpec("g", "fast", "ask")), func(c *cluster) {
			c.waitRun(c.beginRun("r"))
			c.answerToEnd(c.startRun("r2", runtime.StartRequest{
				Thread: "t", Graph: "g", Open: runtime.DiscardOpen,
				Request: checkpoint.RunRequest{Input: `{"log":["r2"]}`},
			}), 9)
		}, false},
	}
}

// revealAll reveals the question of a node. What is shown has its entry in the store.
func (c *cluster) revealAll(node string) {
	c.t.Helper()
	ctx := context.Background()
	list, err := c.store.Interrupts(ctx, checkpoint.InterruptQuery{Thread: "t", Node: node})
	require.NoError(c.t, err)
	var seen runtime.Revealed
	c.callUntilAnswered(func(ctx context.Context, e *engine.Engine) (err error) {
		seen, err = e.RevealInterrupt(ctx, runtime.RevealRequest{Question: runtime.Question{Thread: "t", Interrupt: list[0].ID}, By: ben})
		return err
	})
	require.Contains(c.t, string(seen.Value), "4111")
	stored, err := c.store.Interrupt(ctx, "t", list[0].ID)
	require.NoError(c.t, err)
	require.Contains(c.t, stored.Trail.Records, seen.Entry.Record)
	_, err = stored.Trail.Entries()
	require.NoError(c.t, err)
}

// runOn runs a crash case on a cluster without engines. It returns its summary and the number
// of calls that the first process made.
func (cc *crashCase) runOn(c *cluster) (threadSummary, int64) {
	c.t.Helper()
	defer c.closeAll()
	c.nodes.funcs = crashNodes(c.nodes.ledger)
	maps.Copy(c.nodes.funcs, timedNodes(c.times))
	c.compileGraphs(cc.specs()...)
	c.startEngine(c.faulty)
	cc.drive(c)
	s := c.summarizeThread("t")
	// Whether a run waits a moment for commitLock depends on how soon the one
	// before has released the thread.
	s.States = slices.DeleteFunc(s.States, func(line string) bool { return strings.HasPrefix(line, "run queued") })
	if cc.isTimingDependent {
		s.States = slices.DeleteFunc(s.States, func(line string) bool {
			return line == "run interrupted" || strings.HasPrefix(line, "run running") || strings.HasPrefix(line, "run cancelling")
		})
	}
	require.Empty(c.t, c.nodes.ledger.violations)
	c.checkTags()
	return s, c.faulty.callCount.Load()
}

// crashEvery says at which store calls faults are tried; `make crash` tries all.
var crashEvery = flag.Int64("crash-every", 11, "let each n-th store call of each drama fail, 1 = all")

// TestCrash lets store calls of every scenario fail in every way, and expects the
// same story as without a fault.
func TestCrash(t *testing.T) {
	for i, d := range crashCases() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			crashAtCalls(t, &d, i, *crashEvery, func(t *testing.T) checkpoint.Store {
				return guardTrails(t, memory.New(memory.Options{}))
			})
		})
	}
}

// TestCrashOnDisk plays fewer places over the embedded store.
func TestCrashOnDisk(t *testing.T) {
	for i, d := range crashCases() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			crashAtCalls(t, &d, i, 11**crashEvery, func(t *testing.T) checkpoint.Store {
				t.Helper()
				return guardTrails(t, openSQLite(t))
			})
		})
	}
}

// crashAtCalls tries each stride-th call. Which one is the first differs by
// scenario and by the way of failing, so that all places are used.
func crashAtCalls(t *testing.T, d *crashCase, number int, stride int64, open func(t *testing.T) checkpoint.Store) {
	t.Helper()
	want, calls := d.runInBubble(t, open, 0, faultRefused)
	require.NotEmpty(t, want.Runs)
	points := 0
	for j, m := range faultModes {
		for k := 1 + int64(number*2+j*3)%stride; k <= calls; k += stride {
			points++
			got, _ := d.runInBubble(t, open, k, m)
			require.Equal(t, want, got, "call %d of %d: %s", k, calls, m)
		}
	}
	t.Logf("%d points", points)
}

// runInBubble runs a crash case with a fault on a store of its own, in a bubble with a time of
// its own.
func (cc *crashCase) runInBubble(t *testing.T, open func(t *testing.T) checkpoint.Store, at int64, m faultMode) (got threadSummary, calls int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		got, calls = cc.runOn(newCluster(t, s, at, m))
		require.NoError(t, s.Close())
	})
	return got, calls
}
