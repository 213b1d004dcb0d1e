package workers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

func TestTasksRunInAWorker(t *testing.T) {
	s := startServer(t, config{})
	w := s.startWorker("w1", 4, listSpecs(newChainGraph("g", "a", "b")), map[string]taskFunc{
		"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
			k.addEvent("progress", `{"half":true}`, true)
			return completedResult(`{"x":9007199254740993,"log":["` + k.GetGraphVersion()[:3] + `"]}`)
		},
		"b": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
			return completedResult(`{"x":` + k.channelValue("x") + `,"log":["b"]}`)
		},
	})
	run := s.runGraph("g", `{"x":1}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	require.JSONEq(t, `{"x":9007199254740993,"log":["sha","b"]}`, run.GetOutput().GetJson())
	require.Contains(t, run.GetOutput().GetJson(), "9007199254740993")
	require.Equal(t, []string{"a", "b"}, w.listRan())

	var custom []string
	for _, e := range s.listEvents(run) {
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
	s := startServer(t, config{})
	var made atomic.Int32
	s.startWorker("w1", 4, listSpecs(newChainGraph("g", "a")), map[string]taskFunc{
		"a": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			charge := k.recordOnce(ctx, "charge", func() string { made.Add(1); return `"receipt"` })
			first := k.answerOrUnwind(`"name?"`)
			second := k.answerOrUnwind(`"sure?"`)
			return completedResult(`{"x":[` + charge + `,` + first + `,` + second + `]}`)
		},
	})
	run := s.runGraph("g", `{"x":1}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	run = s.answerRun(run, `"Ada"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	run = s.answerRun(run, `null`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	require.JSONEq(t, `{"x":["receipt","Ada",null],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 1, made.Load())
}

func TestFailuresAreTold(t *testing.T) {
	s := startServer(t, config{})
	s.startWorker("w1", 4, listSpecs(newChainGraph("g", "a")), map[string]taskFunc{
		"a": func(context.Context, *runningTask) *graphdv1.TaskResult {
			return failedResult("ValueError", "no money")
		},
	})
	run := s.runGraph("g", `{"x":1}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_FAILED, run.GetState())
	require.Equal(t, []string{"NODE_FAILED", "ValueError", "no money", "a"}, []string{
		run.GetFailure().GetReason(), run.GetFailure().GetType(), run.GetFailure().GetMessage(), run.GetFailure().GetNode(),
	})
}

func TestRoutersAndReducersOfAWorker(t *testing.T) {
	s := startServer(t, config{})
	g := newChainGraph("g", "a", "b")
	g.Channels = append(g.Channels, &graphdv1.ChannelSpec{Name: "sum", Reducer: "remote", ReducerName: "plus"})
	g.Edges = []*graphdv1.EdgeSpec{{Sources: []string{"b"}, Target: "__end__"}}
	g.Branches = []*graphdv1.BranchSpec{
		{Source: "__start__", Name: "in", Decision: &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: "enter"}, Targets: []string{"a"}},
		{
			Source: "a", Name: "out", Decision: &graphdv1.BranchSpec_WorkerRouter{WorkerRouter: "leave"},
			Paths: map[string]string{"on": "b", "off": "__end__"},
		},
	}
	w := s.startWorker("w1", 4, listSpecs(g), map[string]taskFunc{
		"enter": func(context.Context, *runningTask) *graphdv1.TaskResult { return completedResult("", "a") },
		"leave": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
			if k.channelValue("sum") == `"1+2"` {
				return completedResult("", "on")
			}
			return completedResult("", "off")
		},
		"plus": joinTexts,
		"a":    returnsUpdate(`{"sum":"2"}`),
		"b":    returnsUpdate(`{"sum":"3"}`),
	})
	run := s.runGraph("g", `{"sum":"1"}`)
	require.Empty(t, run.GetFailure().GetMessage())
	require.JSONEq(t, `{"sum":"1+2+3","log":[]}`, run.GetOutput().GetJson())
	require.Equal(t, []string{"enter", "a", "plus", "leave", "plus", "b", "plus"}, w.listRan())
}

func TestGraphsCalledByATask(t *testing.T) {
	s := startServer(t, config{})
	var outer, inner atomic.Int32
	w := s.startWorker("w1", 1, listSpecs(newChainGraph("sub", "i"), newChainGraph("g", "a")), map[string]taskFunc{
		"a": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			outer.Add(1)
			one := k.callGraph(ctx, "sub", `{"x":1}`)
			two := k.callGraph(ctx, "sub", `{"x":2}`)
			return completedResult(`{"x":[` + one + `,` + two + `]}`)
		},
		"i": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
			inner.Add(1)
			return completedResult(`{"log":[` + k.answerOrUnwind(`"what about `+k.channelValue("x")+`?"`) + `]}`)
		},
	})
	run := s.runGraph("g", `{"x":0}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	for _, at := range [][]string{nil, {"a"}} {
		state, err := s.GetState(t.Context(), &graphdv1.GetStateRequest{
			ThreadId: run.GetThreadId(), At: &graphdv1.CheckpointRef{Namespace: at}, Subgraphs: true,
		})
		require.NoError(t, err)
		require.JSONEq(t, map[bool]string{true: `{"x":0,"log":[]}`, false: `{"x":1,"log":[]}`}[at == nil], state.GetValues().GetJson())
		require.Equal(t, []string{map[bool]string{true: "a", false: "i"}[at == nil]}, state.GetNext())
	}
	run = s.answerRun(run, `"first"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	run = s.answerRun(run, `"second"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	require.JSONEq(t, `{"x":[{"x":1,"log":["first"]},{"x":2,"log":["second"]}],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, outer.Load(), "once at first, and after each answer")
	require.EqualValues(t, 4, inner.Load(), "each asked once and answered once; the first is not run for the second")
	require.NotEmpty(t, w.listRan())
}

// joinTexts is a reducer that joins texts.
func joinTexts(_ context.Context, k *runningTask) *graphdv1.TaskResult {
	r := k.GetReduction()
	value := r.GetCurrent().GetJson()
	writes := r.GetWrites()
	if value == "" {
		value, writes = writes[0].GetJson(), writes[1:]
	}
	for _, x := range writes {
		value = value[:len(value)-1] + "+" + x.GetJson()[1:]
	}
	return completedResult(value)
}

// newSumGraph is a chain whose key sum is combined by plus.
func newSumGraph(nodes ...string) *graphdv1.GraphSpec {
	g := newChainGraph("g", nodes...)
	g.Channels = append(g.Channels, &graphdv1.ChannelSpec{Name: "sum", Reducer: "remote", ReducerName: "plus"})
	return g
}

func TestReducersAreAskedForUpdatesByHandToo(t *testing.T) {
	s := startServer(t, config{})
	s.startWorker("w1", 4, listSpecs(newSumGraph("a")), map[string]taskFunc{
		"plus": joinTexts,
		"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
			return completedResult(`{"sum":` + k.answerOrUnwind(`"more?"`) + `,"x":` + k.channelValue("sum") + `}`)
		},
	})
	run := s.runGraph("g", `{"sum":"1"}`)
	resumed, err := s.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(), Update: harness.NewPayload(`{"sum":"2"}`),
		Single: &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"3"`)}},
	}})
	require.NoError(t, err)
	run = s.waitStopped(resumed)
	require.JSONEq(t, `{"sum":"1+2+3","x":"1+2","log":[]}`, run.GetOutput().GetJson(), run.GetFailure())

	after, err := s.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{ThreadId: run.GetThreadId(), Values: harness.NewPayload(`{"sum":"4"}`), AsNode: "a"})
	require.NoError(t, err)
	require.JSONEq(t, `{"sum":"1+2+3+4","x":"1+2","log":[]}`, after.GetValues().GetJson())
	after, err = s.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{
		ThreadId: run.GetThreadId(), Values: harness.NewPayload(`{"sum":{"__overwrite__":"5"}}`), AsNode: "a",
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"sum":"5","x":"1+2","log":[]}`, after.GetValues().GetJson())
}

func TestAReducerThatFailsFailsTheRun(t *testing.T) {
	s := startServer(t, config{})
	s.startWorker("w1", 4, listSpecs(newSumGraph("a")), map[string]taskFunc{
		"plus": func(context.Context, *runningTask) *graphdv1.TaskResult {
			return failedResult("TypeError", "no sum of these")
		},
		"a": returnsUpdate(`{"sum":"2"}`),
	})
	run := s.runGraph("g", `{"sum":"1"}`)
	require.Equal(t, []string{"NODE_FAILED", "TypeError", "sum"}, []string{
		run.GetFailure().GetReason(), run.GetFailure().GetType(), run.GetFailure().GetDetails()["channel"],
	})
	require.Contains(t, run.GetFailure().GetMessage(), "no sum of these")
}

func TestCalledGraphsFailAndCommandTheirCaller(t *testing.T) {
	s := startServer(t, config{})
	s.startWorker("w1", 2, listSpecs(newChainGraph("bad", "i"), newChainGraph("boss", "j"), newChainGraph("g", "a", "b")), map[string]taskFunc{
		"i": func(context.Context, *runningTask) *graphdv1.TaskResult {
			return failedResult("ValueError", "inner trouble")
		},
		"j": func(context.Context, *runningTask) *graphdv1.TaskResult {
			r := completedResult(`{"x":"of the called graph"}`)
			r.GetCompleted().ToParent = true
			return r
		},
		"a": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			k.callGraph(ctx, "boss", `{"x":1}`)
			return failedResult("Unreachable", "the command ends the task")
		},
		"b": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			k.callGraph(ctx, "bad", `{"x":1}`)
			return completedResult("")
		},
	})
	run := s.runGraph("g", `{"x":0}`)
	require.Equal(t, []string{"ValueError", "inner trouble", "b"}, []string{
		run.GetFailure().GetType(), run.GetFailure().GetMessage(), run.GetFailure().GetNode(),
	})
	state, err := s.GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: run.GetThreadId()})
	require.NoError(t, err)
	require.JSONEq(t, `{"x":"of the called graph","log":[]}`, state.GetValues().GetJson())
}

// A called graph that keeps its state remembers earlier visits of the node.
func TestAPersistentCalledGraphRemembers(t *testing.T) {
	s := startServer(t, config{})
	s.startWorker("w1", 2, listSpecs(newChainGraph("sub", "i"), newChainGraph("g", "a")), map[string]taskFunc{
		"i": returnsUpdate(`{"log":["visit"]}`),
		"a": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			resp, err := k.client.CallGraph(ctx, &graphdv1.CallGraphRequest{
				LeaseToken: k.GetLease().GetToken(), Graph: "sub", Input: harness.NewPayload(`{"x":1}`),
				Persistence: graphdv1.SubgraphPersistence_SUBGRAPH_PERSISTENCE_PERSIST,
			})
			if err != nil {
				return failedResult("Call", err.Error())
			}
			return completedResult(`{"x":` + resp.GetOutput().GetJson() + `}`)
		},
	})
	run := s.runGraph("g", `{"x":0}`)
	require.JSONEq(t, `{"x":{"x":1,"log":["visit"]},"log":[]}`, run.GetOutput().GetJson(), run.GetFailure())
	again, err := s.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{
		ThreadId: run.GetThreadId(), Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(`{"x":0}`)},
	}})
	require.NoError(t, err)
	run = s.waitStopped(again)
	require.JSONEq(t, `{"x":{"x":1,"log":["visit","visit"]},"log":[]}`, run.GetOutput().GetJson(), run.GetFailure())
}

// A worker that dies while a graph it has called runs: the graph goes on where
// it was when the task is run again.
func TestACalledGraphSurvivesItsCaller(t *testing.T) {
	s := startServer(t, config{})
	h := newHello("w1", 1)
	h.Manifest.Graphs = listSpecs(newChainGraph("sub", "i", "k"), newChainGraph("g", "a"))
	first := s.connectWorker(h)
	run := s.startRun("g", `{"x":0}`)
	a := first.nextTask()
	call := func(w *workerSession, a *graphdv1.TaskAssignment) chan string {
		out := make(chan string, 1)
		go func() {
			resp, err := w.client.CallGraph(t.Context(), &graphdv1.CallGraphRequest{
				LeaseToken: a.GetLease().GetToken(), Graph: "sub", Input: harness.NewPayload(`{"x":1}`),
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
	_, err := first.completeTask(first.nextTask(), completedResult(`{"log":["i"]}`)) // node i
	require.NoError(t, err)
	require.Equal(t, "k", first.nextTask().GetNode())
	first.cancel()
	s.waitWorkerGone("w1")
	s.connectWorker(newHello("w1", 0))                                              // without a: it goes on elsewhere at once
	require.Contains(t, receiveOrFail(t, lost, "the end of the old call"), "lease") // k has no owner then

	h = newHello("w2", 1)
	h.Manifest.Graphs = listSpecs(newChainGraph("sub", "i", "k"), newChainGraph("g", "a"))
	second := s.connectWorker(h)
	moved := second.nextTask()
	require.Equal(t, []any{"a", a.GetTaskId()}, []any{moved.GetNode(), moved.GetTaskId()})
	output := call(second, moved)
	k := second.nextTask()
	require.Equal(t, "k", k.GetNode(), "i is not run again")
	_, err = second.completeTask(k, completedResult(`{"log":["k"]}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":1,"log":["i","k"]}`, receiveOrFail(t, output, "the output"))
	_, err = second.completeTask(moved, completedResult(`{"x":9}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"x":9,"log":[]}`, s.waitStopped(run).GetOutput().GetJson())
}
