package workers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func TestTasksRunInAWorker(t *testing.T) {
	s := start(t, config{})
	w := s.work("w1", 4, specs(chain("g", "a", "b")), map[string]code{
		"a": func(_ context.Context, k *task) *graphdv1.TaskResult {
			k.emit("progress", `{"half":true}`, true)
			return completed(`{"x":9007199254740993,"log":["` + k.GetGraphVersion()[:3] + `"]}`)
		},
		"b": func(_ context.Context, k *task) *graphdv1.TaskResult {
			return completed(`{"x":` + k.get("x") + `,"log":["b"]}`)
		},
	})
	run := s.run("g", `{"x":1}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	require.JSONEq(t, `{"x":9007199254740993,"log":["sha","b"]}`, run.GetOutput().GetJson())
	require.Contains(t, run.GetOutput().GetJson(), "9007199254740993")
	require.Equal(t, []string{"a", "b"}, w.ran())

	var custom []string
	for _, e := range s.events(run) {
		if c := e.GetCustom(); c != nil {
			custom = append(custom, c.GetName()+c.GetValue().GetJson())
		}
	}
	require.Equal(t, []string{`progress{"half":true}`}, custom)

	list, err := s.ListWorkers(t.Context(), &graphdv1.ListWorkersRequest{Graph: "g"})
	require.NoError(t, err)
	require.Len(t, list.GetWorkers(), 1)
	require.Equal(t, []any{"w1", []string{"g/*"}, uint32(4), "b1"}, []any{
		list.GetWorkers()[0].GetWorkerId(), list.GetWorkers()[0].GetNodes(),
		list.GetWorkers()[0].GetTotalSlots(), list.GetWorkers()[0].GetBuildId(),
	})
}

func TestQuestionsAndMemos(t *testing.T) {
	s := start(t, config{})
	var made atomic.Int32
	s.work("w1", 4, specs(chain("g", "a")), map[string]code{
		"a": func(ctx context.Context, k *task) *graphdv1.TaskResult {
			charge := k.memo(ctx, "charge", func() string { made.Add(1); return `"receipt"` })
			first := k.ask(`"name?"`)
			second := k.ask(`"sure?"`)
			return completed(`{"x":[` + charge + `,` + first + `,` + second + `]}`)
		},
	})
	run := s.run("g", `{"x":1}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	run = s.answer(run, `"Ada"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	run = s.answer(run, `null`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	require.JSONEq(t, `{"x":["receipt","Ada",null],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 1, made.Load())
}

func TestFailuresAreTold(t *testing.T) {
	s := start(t, config{})
	s.work("w1", 4, specs(chain("g", "a")), map[string]code{
		"a": func(context.Context, *task) *graphdv1.TaskResult { return failure("ValueError", "no money") },
	})
	run := s.run("g", `{"x":1}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, run.GetState())
	require.Equal(t, []string{"NODE_FAILED", "ValueError", "no money", "a"}, []string{
		run.GetFailure().GetReason(), run.GetFailure().GetType(), run.GetFailure().GetMessage(), run.GetFailure().GetNode(),
	})
}

func TestRoutersAndReducersOfAWorker(t *testing.T) {
	s := start(t, config{})
	g := chain("g", "a", "b")
	g.Channels = append(g.Channels, &graphdv1.ChannelSpec{Name: "sum", Reducer: "remote", ReducerName: "plus"})
	g.Edges = []*graphdv1.EdgeSpec{{Sources: []string{"b"}, Target: "__end__"}}
	g.Branches = []*graphdv1.BranchSpec{
		{Source: "__start__", Name: "in", Decision: &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: "enter"}, Targets: []string{"a"}},
		{
			Source: "a", Name: "out", Decision: &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: "leave"},
			Paths: map[string]string{"on": "b", "off": "__end__"},
		},
	}
	w := s.work("w1", 4, specs(g), map[string]code{
		"enter": func(context.Context, *task) *graphdv1.TaskResult { return completed("", "a") },
		"leave": func(_ context.Context, k *task) *graphdv1.TaskResult {
			if k.get("sum") == `"1+2"` {
				return completed("", "on")
			}
			return completed("", "off")
		},
		"plus": plus,
		"a":    does(`{"sum":"2"}`),
		"b":    does(`{"sum":"3"}`),
	})
	run := s.run("g", `{"sum":"1"}`)
	require.Empty(t, run.GetFailure().GetMessage())
	require.JSONEq(t, `{"sum":"1+2+3","log":[]}`, run.GetOutput().GetJson())
	require.Equal(t, []string{"enter", "a", "plus", "leave", "plus", "b", "plus"}, w.ran())
}

func TestGraphsCalledByATask(t *testing.T) {
	s := start(t, config{})
	var outer, inner atomic.Int32
	w := s.work("w1", 1, specs(chain("sub", "i"), chain("g", "a")), map[string]code{
		"a": func(ctx context.Context, k *task) *graphdv1.TaskResult {
			outer.Add(1)
			one := k.call(ctx, "sub", `{"x":1}`)
			two := k.call(ctx, "sub", `{"x":2}`)
			return completed(`{"x":[` + one + `,` + two + `]}`)
		},
		"i": func(_ context.Context, k *task) *graphdv1.TaskResult {
			inner.Add(1)
			return completed(`{"log":[` + k.ask(`"what about `+k.get("x")+`?"`) + `]}`)
		},
	})
	run := s.run("g", `{"x":0}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	for _, at := range [][]string{nil, {"a"}} {
		state, err := s.GetState(t.Context(), &graphdv1.GetStateRequest{
			ThreadId: run.GetThreadId(), At: &graphdv1.CheckpointRef{Namespace: at}, Subgraphs: true,
		})
		require.NoError(t, err)
		require.JSONEq(t, map[bool]string{true: `{"x":0,"log":[]}`, false: `{"x":1,"log":[]}`}[at == nil], state.GetValues().GetJson())
		require.Equal(t, []string{map[bool]string{true: "a", false: "i"}[at == nil]}, state.GetNext())
	}
	run = s.answer(run, `"first"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	run = s.answer(run, `"second"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	require.JSONEq(t, `{"x":[{"x":1,"log":["first"]},{"x":2,"log":["second"]}],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, outer.Load(), "once at first, and after each answer")
	require.EqualValues(t, 4, inner.Load(), "each asked once and answered once; the first is not run for the second")
	require.NotEmpty(t, w.ran())
}

// plus is a reducer that joins texts.
func plus(_ context.Context, k *task) *graphdv1.TaskResult {
	r := k.GetReduction()
	value := r.GetCurrent().GetJson()
	writes := r.GetWrites()
	if value == "" {
		value, writes = writes[0].GetJson(), writes[1:]
	}
	for _, x := range writes {
		value = value[:len(value)-1] + "+" + x.GetJson()[1:]
	}
	return completed(value)
}

// summing is a chain whose key sum is combined by plus.
func summing(nodes ...string) *graphdv1.GraphSpec {
	g := chain("g", nodes...)
	g.Channels = append(g.Channels, &graphdv1.ChannelSpec{Name: "sum", Reducer: "remote", ReducerName: "plus"})
	return g
}

func TestReducersAreAskedForUpdatesByHandToo(t *testing.T) {
	s := start(t, config{})
	s.work("w1", 4, specs(summing("a")), map[string]code{
		"plus": plus,
		"a": func(_ context.Context, k *task) *graphdv1.TaskResult {
			return completed(`{"sum":` + k.ask(`"more?"`) + `,"x":` + k.get("sum") + `}`)
		},
	})
	run := s.run("g", `{"sum":"1"}`)
	resumed, err := s.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(), Update: text(`{"sum":"2"}`),
		Single: &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: text(`"3"`)}},
	}})
	require.NoError(t, err)
	run = s.wait(resumed)
	require.JSONEq(t, `{"sum":"1+2+3","x":"1+2","log":[]}`, run.GetOutput().GetJson(), run.GetFailure())

	after, err := s.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{ThreadId: run.GetThreadId(), Values: text(`{"sum":"4"}`), AsNode: "a"})
	require.NoError(t, err)
	require.JSONEq(t, `{"sum":"1+2+3+4","x":"1+2","log":[]}`, after.GetValues().GetJson())
	after, err = s.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{
		ThreadId: run.GetThreadId(), Values: text(`{"sum":{"__overwrite__":"5"}}`), AsNode: "a",
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"sum":"5","x":"1+2","log":[]}`, after.GetValues().GetJson())
}

func TestAReducerThatFailsFailsTheRun(t *testing.T) {
	s := start(t, config{})
	s.work("w1", 4, specs(summing("a")), map[string]code{
		"plus": func(context.Context, *task) *graphdv1.TaskResult { return failure("TypeError", "no sum of these") },
		"a":    does(`{"sum":"2"}`),
	})
	run := s.run("g", `{"sum":"1"}`)
	require.Equal(t, []string{"NODE_FAILED", "TypeError", "sum"}, []string{
		run.GetFailure().GetReason(), run.GetFailure().GetType(), run.GetFailure().GetDetails()["channel"],
	})
	require.Contains(t, run.GetFailure().GetMessage(), "no sum of these")
}

func TestCalledGraphsFailAndCommandTheirCaller(t *testing.T) {
	s := start(t, config{})
	s.work("w1", 2, specs(chain("bad", "i"), chain("boss", "j"), chain("g", "a", "b")), map[string]code{
		"i": func(context.Context, *task) *graphdv1.TaskResult { return failure("ValueError", "inner trouble") },
		"j": func(context.Context, *task) *graphdv1.TaskResult {
			r := completed(`{"x":"of the called graph"}`)
			r.GetCompleted().ToParent = true
			return r
		},
		"a": func(ctx context.Context, k *task) *graphdv1.TaskResult {
			k.call(ctx, "boss", `{"x":1}`)
			return failure("Unreachable", "the command ends the task")
		},
		"b": func(ctx context.Context, k *task) *graphdv1.TaskResult {
			k.call(ctx, "bad", `{"x":1}`)
			return completed("")
		},
	})
	run := s.run("g", `{"x":0}`)
	require.Equal(t, []string{"ValueError", "inner trouble", "b"}, []string{
		run.GetFailure().GetType(), run.GetFailure().GetMessage(), run.GetFailure().GetNode(),
	})
	state, err := s.GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: run.GetThreadId()})
	require.NoError(t, err)
	require.JSONEq(t, `{"x":"of the called graph","log":[]}`, state.GetValues().GetJson())
}

// A called graph that keeps its state remembers earlier visits of the node.
func TestAPersistentCalledGraphRemembers(t *testing.T) {
	s := start(t, config{})
	s.work("w1", 2, specs(chain("sub", "i"), chain("g", "a")), map[string]code{
		"i": does(`{"log":["visit"]}`),
		"a": func(ctx context.Context, k *task) *graphdv1.TaskResult {
			resp, err := k.c.CallGraph(ctx, &graphdv1.CallGraphRequest{
				LeaseToken: k.GetLease().GetToken(), Graph: "sub", Input: text(`{"x":1}`),
				Persistence: graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_PERSIST,
			})
			if err != nil {
				return failure("Call", err.Error())
			}
			return completed(`{"x":` + resp.GetOutput().GetJson() + `}`)
		},
	})
	run := s.run("g", `{"x":0}`)
	require.JSONEq(t, `{"x":{"x":1,"log":["visit"]},"log":[]}`, run.GetOutput().GetJson(), run.GetFailure())
	again, err := s.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: run.GetThreadId(), Start: &graphdv1.RunSpec_Input{Input: text(`{"x":0}`)},
	}})
	require.NoError(t, err)
	run = s.wait(again)
	require.JSONEq(t, `{"x":{"x":1,"log":["visit","visit"]},"log":[]}`, run.GetOutput().GetJson(), run.GetFailure())
}

// A worker that dies while a graph it has called runs: the graph goes on where
// it was when the task is run again.
func TestACalledGraphSurvivesItsCaller(t *testing.T) {
	s := start(t, config{})
	h := hello("w1", 1)
	h.Manifest.Graphs = specs(chain("sub", "i", "k"), chain("g", "a"))
	first := s.connect(h)
	run := s.begin("g", `{"x":0}`)
	a := first.next()
	call := func(w *session, a *graphdv1.TaskAssignment) chan string {
		out := make(chan string, 1)
		go func() {
			resp, err := w.c.CallGraph(t.Context(), &graphdv1.CallGraphRequest{
				LeaseToken: a.GetLease().GetToken(), Graph: "sub", Input: text(`{"x":1}`),
			})
			if err != nil {
				out <- err.Error()
				return
			}
			out <- resp.GetOutput().GetJson()
		}()
		return out
	}
	lost := call(first, a)
	_, err := first.complete(first.next(), completed(`{"log":["i"]}`)) // node i
	require.NoError(t, err)
	require.Equal(t, "k", first.next().GetNode())
	first.cancel()
	s.gone("w1")
	s.connect(hello("w1", 0))                                               // without a: it goes on elsewhere at once
	require.Contains(t, await(t, lost, "the end of the old call"), "lease") // k is nobody's then

	h = hello("w2", 1)
	h.Manifest.Graphs = specs(chain("sub", "i", "k"), chain("g", "a"))
	second := s.connect(h)
	moved := second.next()
	require.Equal(t, []any{"a", a.GetTaskId()}, []any{moved.GetNode(), moved.GetTaskId()})
	output := call(second, moved)
	k := second.next()
	require.Equal(t, "k", k.GetNode(), "i is not run again")
	_, err = second.complete(k, completed(`{"log":["k"]}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":1,"log":["i","k"]}`, await(t, output, "the output"))
	_, err = second.complete(moved, completed(`{"x":9}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":9,"log":[]}`, s.wait(run).GetOutput().GetJson())
}
