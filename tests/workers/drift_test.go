package workers_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/seen"
	"github.com/graphd-dev/graphd/tests/harness"
)

// priceNode is a worker's node that asks whether to pay what the price is when it
// runs.
type priceNode struct {
	price, paid atomic.Int64
}

func (p *priceNode) newAsk() *graphdv1.Ask {
	price := p.price.Load()
	value, _ := json.Marshal(map[string]int64{"pay": price})
	return &graphdv1.Ask{Value: harness.NewPayload(string(value))}
}

// getInterrupt reads an interrupt as it is now.
func (s *server) getInterrupt(run *graphdv1.Run, id string) *graphdv1.Interrupt {
	s.t.Helper()
	q, err := graphdv1.NewInterruptServiceClient(s.client.conn).GetInterrupt(s.t.Context(),
		&graphdv1.GetInterruptRequest{ThreadId: run.GetThreadId(), InterruptId: id})
	require.NoError(s.t, err)
	return q
}

// TestAWorkerThatAsksSomethingElse gets no answer to what was shown: what it asks
// now is asked, and the interrupt before keeps its answer.
func TestAWorkerThatAsksSomethingElse(t *testing.T) {
	s, p := startServer(t, config{}), &priceNode{}
	p.price.Store(100)
	s.startWorker("w1", 4, listSpecs(newChainGraph("g", "a")), map[string]taskFunc{"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
		answer := k.answerOrUnwind(p.newAsk().GetValue().GetJson())
		p.paid.Add(p.price.Load())
		return completedResult(`{"x":` + answer + `}`)
	}})
	run := s.runGraph("g", `{"x":1}`)
	asked := run.GetOpenInterruptIds()
	p.price.Store(99999)
	run = s.answerRun(run, `"yes"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	require.Zero(t, p.paid.Load())
	old := s.getInterrupt(run, asked[0])
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED, old.GetState())
	require.JSONEq(t, `"yes"`, old.GetResponse().GetJson())
	now := s.getInterrupt(run, run.GetOpenInterruptIds()[0])
	require.Equal(t, asked[0], now.GetReplaces())
	require.EqualValues(t, 1, now.GetRound())
	require.Equal(t, []string{"/pay"}, now.GetDiffers())
	require.Equal(t, seen.Digest("", json.RawMessage(`{"pay":99999}`), nil), now.GetSeen())
	run = s.answerRun(run, `"that too"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, run.GetState())
	require.EqualValues(t, 99999, p.paid.Load())
}

// TestWhatAWorkerSaysOfAnswersIsChecked has workers that use an answer for
// something else, and say so, or accept it.
func TestWhatAWorkerSaysOfAnswersIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		used   func(shown string, other *graphdv1.Ask) *graphdv1.UsedAnswer
		reason string
	}{
		"it was shown": {func(shown string, _ *graphdv1.Ask) *graphdv1.UsedAnswer {
			return &graphdv1.UsedAnswer{Seen: shown}
		}, ""},
		"it was not": {func(string, *graphdv1.Ask) *graphdv1.UsedAnswer {
			return &graphdv1.UsedAnswer{Seen: "0123"}
		}, "NON_DETERMINISTIC_NODE"},
		"it is not accepted": {func(_ string, other *graphdv1.Ask) *graphdv1.UsedAnswer {
			return &graphdv1.UsedAnswer{Asked: other}
		}, "NON_DETERMINISTIC_NODE"},
		"it is accepted": {func(_ string, other *graphdv1.Ask) *graphdv1.UsedAnswer {
			other.Drift = graphdv1.Drift_DRIFT_ACCEPT
			return &graphdv1.UsedAnswer{Asked: other}
		}, ""},
		"parts that are none": {func(_ string, other *graphdv1.Ask) *graphdv1.UsedAnswer {
			other.DriftIgnore = []string{"pay"}
			return &graphdv1.UsedAnswer{Asked: other}
		}, "INVALID_NODE_UPDATE"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{})
			s.startWorker("w1", 4, listSpecs(newChainGraph("g", "a")), map[string]taskFunc{"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
				entries := k.GetJournal().GetEntries()
				if len(entries) == 0 {
					return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: &graphdv1.TaskInterrupted{
						Asks: []*graphdv1.Ask{{Value: harness.NewPayload(`{"pay":100}`)}},
					}}}
				}
				k.used = append(k.used, c.used(entries[0].GetAnswer().GetSeen(), &graphdv1.Ask{Value: harness.NewPayload(`{"pay":99999}`)}))
				return completedResult(`{"x":2}`)
			}})
			run := s.runGraph("g", `{"x":1}`)
			id := run.GetOpenInterruptIds()[0]
			run = s.answerRun(run, `"yes"`)
			require.Equal(t, c.reason, run.GetFailure().GetReason(), run.GetFailure().GetMessage())
			q := s.getInterrupt(run, id)
			if name == "it is accepted" {
				require.Equal(t, []string{"/pay"}, q.GetAccepted())
			} else {
				require.Empty(t, q.GetAccepted())
			}
		})
	}
}

// TestAWorkerThatDoesNotCompare gets no answers: the task waits for one that
// does, and the log of the thread says why.
func TestAWorkerThatDoesNotCompare(t *testing.T) {
	s := startServer(t, config{})
	old := s.connectWorker(&graphdv1.Hello{
		WorkerId: "old", Credit: &graphdv1.Credit{TotalSlots: 4},
		Manifest: &graphdv1.WorkerManifest{Graphs: listSpecs(newChainGraph("g", "a"))},
	})
	p := &scriptedWorker{workerSession: old, running: make(map[string]context.CancelFunc)}
	old.keepSendingHeartbeats(p.runningTokens)
	does := map[string]taskFunc{"a": func(_ context.Context, k *runningTask) *graphdv1.TaskResult {
		return completedResult(`{"x":` + k.answerOrUnwind(`"sure?"`) + `}`)
	}}
	go p.serveTasks(does)
	run := s.runGraph("g", `{"x":1}`)
	stream, err := s.Resume(t.Context(), &graphdv1.ResumeRequest{
		Resume: &graphdv1.ResumeSpec{
			ThreadId: run.GetThreadId(),
			Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(`"yes"`)}},
		},
		Filter: &graphdv1.EventFilter{Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_TASKS}},
	})
	require.NoError(t, err)
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		if change := e.GetTask(); change.GetPhase() == graphdv1.TaskChange_PHASE_UNASSIGNED {
			require.Contains(t, change.GetFailure().GetMessage(), `compares what it asks with what was answered (feature "drift")`)
			break
		}
	}
	require.Equal(t, []string{"a"}, p.listRan())
	s.startWorker("new", 4, listSpecs(newChainGraph("g", "a")), does)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitStopped(run).GetState())
}
