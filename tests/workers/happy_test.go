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
		"plus": func(_ context.Context, k *task) *graphdv1.TaskResult {
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
		},
		"a": does(`{"sum":"2"}`),
		"b": does(`{"sum":"3"}`),
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
	run = s.answer(run, `"first"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	run = s.answer(run, `"second"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState(), run.GetFailure())
	require.JSONEq(t, `{"x":[{"x":1,"log":["first"]},{"x":2,"log":["second"]}],"log":[]}`, run.GetOutput().GetJson())
	require.EqualValues(t, 3, outer.Load(), "once at first, and after each answer")
	require.EqualValues(t, 4, inner.Load(), "each asked once and answered once; the first is not run for the second")
	require.NotEmpty(t, w.ran())
}
