package workers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// newAskGraph is a graph of three nodes side by side: a adds 2, b and c ask what to
// add. A worker combines.
func newAskGraph() *graphdv1.GraphSpec {
	g := newSumGraph("a", "b", "c")
	g.Edges = nil
	for _, n := range []string{"a", "b", "c"} {
		g.Edges = append(g.Edges, &graphdv1.EdgeSpec{Sources: []string{"__start__"}, Target: n},
			&graphdv1.EdgeSpec{Sources: []string{n}, Target: "__end__"})
	}
	return g
}

func askNode(_ context.Context, k *runningTask) *graphdv1.TaskResult {
	return completedResult(`{"sum":` + k.answerOrUnwind(`"and `+k.GetNode()+`?"`) + `}`)
}

// readValues is the state that people see.
func (s *server) readValues(run *graphdv1.Run) string {
	s.t.Helper()
	state, err := s.GetState(s.t.Context(), &graphdv1.GetStateRequest{ThreadId: run.GetThreadId()})
	require.NoError(s.t, err)
	return state.GetValues().GetJson()
}

// answerInterrupt answers one of several interrupts.
func (s *server) answerInterrupt(run *graphdv1.Run, id, value string) *graphdv1.Run {
	s.t.Helper()
	next, err := s.ResumeRun(s.t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{
		ThreadId: run.GetThreadId(), Responses: []*graphdv1.InterruptResponse{{
			InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(value)},
		}},
	}})
	require.NoError(s.t, err)
	return s.waitStopped(next)
}

// While some nodes wait, people see what those that are done come to, also
// when no worker is there to combine it. It is combined once for that, and once
// for the superstep.
func TestWhatIsDoneIsShownWhileOthersWait(t *testing.T) {
	s := startServer(t, config{})
	does := map[string]taskFunc{"a": returnsUpdate(`{"sum":"2"}`), "b": askNode, "c": askNode, "plus": joinTexts}
	w := s.startWorker("w1", 4, listSpecs(newAskGraph()), does)
	run := s.runGraph("g", `{"sum":"1"}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	require.Len(t, run.GetOpenInterruptIds(), 2)
	require.JSONEq(t, `{"sum":"1+2","log":[]}`, s.readValues(run))
	require.Equal(t, 1, countOf(w.listRan(), "plus"))

	run = s.answerInterrupt(run, run.GetOpenInterruptIds()[0], `"3"`)
	require.JSONEq(t, `{"sum":"1+2+3","log":[]}`, s.readValues(run))
	require.Equal(t, 2, countOf(w.listRan(), "plus"))

	run = s.answerRun(run, `"3"`)
	require.JSONEq(t, `{"sum":"1+2+3+3","log":[]}`, run.GetOutput().GetJson())
	require.Equal(t, 3, countOf(w.listRan(), "plus"), "the superstep is combined once, of what was there before it")
}

// A worker that can't be told what the writes come to sees all the others.
func TestWhatCannotBeCombinedYetIsLeftOut(t *testing.T) {
	s := startServer(t, config{})
	var asked atomic.Int32
	s.startWorker("w1", 4, listSpecs(newAskGraph()), map[string]taskFunc{
		"a": returnsUpdate(`{"sum":"2","x":5}`), "b": askNode, "c": askNode,
		"plus": func(ctx context.Context, k *runningTask) *graphdv1.TaskResult {
			if asked.Add(1) == 1 {
				return failedResult("TypeError", "not now")
			}
			return joinTexts(ctx, k)
		},
	})
	run := s.runGraph("g", `{"sum":"1"}`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState(), run.GetFailure())
	require.JSONEq(t, `{"sum":"1","x":5,"log":[]}`, s.readValues(run))
	run = s.answerInterrupt(run, run.GetOpenInterruptIds()[0], `"3"`)
	require.JSONEq(t, `{"sum":"1+2+3","x":5,"log":[]}`, s.readValues(run))
}

func countOf(list []string, what string) int {
	n := 0
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}
