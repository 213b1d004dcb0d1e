package workers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// asking is a graph of three nodes side by side: a adds 2, b and c ask what to
// add. A worker combines.
func asking() *graphdv1.GraphSpec {
	g := summing("a", "b", "c")
	g.Edges = nil
	for _, n := range []string{"a", "b", "c"} {
		g.Edges = append(g.Edges, &graphdv1.EdgeSpec{Sources: []string{"__start__"}, Target: n},
			&graphdv1.EdgeSpec{Sources: []string{n}, Target: "__end__"})
	}
	return g
}

func asks(_ context.Context, k *task) *graphdv1.TaskResult {
	return completed(`{"sum":` + k.ask(`"and `+k.GetNode()+`?"`) + `}`)
}

// shown is the state that people see.
func (s *server) shown(run *graphdv1.Run) string {
	s.t.Helper()
	state, err := s.GetState(s.t.Context(), &graphdv1.GetStateRequest{ThreadId: run.GetThreadId()})
	require.NoError(s.t, err)
	return state.GetValues().GetJson()
}

// answerOne answers one of several questions.
func (s *server) answerOne(run *graphdv1.Run, id, value string) *graphdv1.Run {
	s.t.Helper()
	next, err := s.ResumeRun(s.t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(), Responses: []*graphdv1.InterruptResponse{{
			InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: text(value)},
		}},
	}})
	require.NoError(s.t, err)
	return s.wait(next)
}

// While some nodes wait, people see what those that are done come to, also
// when no worker is there to combine it. It is combined once for that, and once
// for the superstep.
func TestWhatIsDoneIsShownWhileOthersWait(t *testing.T) {
	s := start(t, config{})
	does := map[string]code{"a": does(`{"sum":"2"}`), "b": asks, "c": asks, "plus": plus}
	w := s.work("w1", 4, specs(asking()), does)
	run := s.run("g", `{"sum":"1"}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	require.Len(t, run.GetOpenInterruptIds(), 2)
	require.JSONEq(t, `{"sum":"1+2","log":[]}`, s.shown(run))
	require.Equal(t, 1, times(w.ran(), "plus"))

	run = s.answerOne(run, run.GetOpenInterruptIds()[0], `"3"`)
	require.JSONEq(t, `{"sum":"1+2+3","log":[]}`, s.shown(run))
	require.Equal(t, 2, times(w.ran(), "plus"))

	run = s.answer(run, `"3"`)
	require.JSONEq(t, `{"sum":"1+2+3+3","log":[]}`, run.GetOutput().GetJson())
	require.Equal(t, 3, times(w.ran(), "plus"), "the superstep is combined once, of what was there before it")
}

// Who can't be told what the writes come to sees all the others.
func TestWhatCannotBeCombinedYetIsLeftOut(t *testing.T) {
	s := start(t, config{})
	var asked atomic.Int32
	s.work("w1", 4, specs(asking()), map[string]code{
		"a": does(`{"sum":"2","x":5}`), "b": asks, "c": asks,
		"plus": func(ctx context.Context, k *task) *graphdv1.TaskResult {
			if asked.Add(1) == 1 {
				return failure("TypeError", "not now")
			}
			return plus(ctx, k)
		},
	})
	run := s.run("g", `{"sum":"1"}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	require.JSONEq(t, `{"sum":"1","x":5,"log":[]}`, s.shown(run))
	run = s.answerOne(run, run.GetOpenInterruptIds()[0], `"3"`)
	require.JSONEq(t, `{"sum":"1+2+3","x":5,"log":[]}`, s.shown(run))
}

func times(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}
