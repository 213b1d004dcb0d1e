package workers_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/seen"
)

// shop is a worker's node that asks whether to pay what the price is when it
// runs.
type shop struct {
	price, paid atomic.Int64
}

func (p *shop) ask() *graphdv1.Ask {
	price := p.price.Load()
	value, _ := json.Marshal(map[string]int64{"pay": price})
	return &graphdv1.Ask{Value: text(string(value))}
}

// question reads a question as it is now.
func (s *server) question(run *graphdv1.Run, id string) *graphdv1.Interrupt {
	s.t.Helper()
	q, err := graphdv1.NewInterruptServiceClient(s.client.conn).GetInterrupt(s.t.Context(),
		&graphdv1.GetInterruptRequest{ThreadId: run.GetThreadId(), InterruptId: id})
	require.NoError(s.t, err)
	return q
}

// TestAWorkerThatAsksSomethingElse gets no answer to what was shown: what it asks
// now is asked, and the question before keeps its answer.
func TestAWorkerThatAsksSomethingElse(t *testing.T) {
	s, p := start(t, config{}), &shop{}
	p.price.Store(100)
	s.work("w1", 4, specs(chain("g", "a")), map[string]code{"a": func(_ context.Context, k *task) *graphdv1.TaskResult {
		answer := k.ask(p.ask().GetValue().GetJson())
		p.paid.Add(p.price.Load())
		return completed(`{"x":` + answer + `}`)
	}})
	run := s.run("g", `{"x":1}`)
	asked := run.GetOpenInterruptIds()
	p.price.Store(99999)
	run = s.answer(run, `"yes"`)
	require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, run.GetState())
	require.Zero(t, p.paid.Load())
	old := s.question(run, asked[0])
	require.Equal(t, graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED, old.GetState())
	require.JSONEq(t, `"yes"`, old.GetResponse().GetJson())
	now := s.question(run, run.GetOpenInterruptIds()[0])
	require.Equal(t, asked[0], now.GetReplaces())
	require.EqualValues(t, 1, now.GetRound())
	require.Equal(t, []string{"/pay"}, now.GetDiffers())
	require.Equal(t, seen.Digest("", json.RawMessage(`{"pay":99999}`), nil), now.GetSeen())
	run = s.answer(run, `"that too"`)
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
			s := start(t, config{})
			s.work("w1", 4, specs(chain("g", "a")), map[string]code{"a": func(_ context.Context, k *task) *graphdv1.TaskResult {
				entries := k.GetJournal().GetEntries()
				if len(entries) == 0 {
					return &graphdv1.TaskResult{Outcome: &graphdv1.TaskResult_Interrupted{Interrupted: &graphdv1.TaskInterrupted{
						Asks: []*graphdv1.Ask{{Value: text(`{"pay":100}`)}},
					}}}
				}
				k.used = append(k.used, c.used(entries[0].GetAnswer().GetSeen(), &graphdv1.Ask{Value: text(`{"pay":99999}`)}))
				return completed(`{"x":2}`)
			}})
			run := s.run("g", `{"x":1}`)
			id := run.GetOpenInterruptIds()[0]
			run = s.answer(run, `"yes"`)
			require.Equal(t, c.reason, run.GetFailure().GetReason(), run.GetFailure().GetMessage())
			q := s.question(run, id)
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
	s := start(t, config{})
	old := s.connect(&graphdv1.Hello{
		WorkerId: "old", Credit: &graphdv1.Credit{TotalSlots: 4},
		Manifest: &graphdv1.WorkerManifest{Graphs: specs(chain("g", "a"))},
	})
	p := &polite{session: old, running: make(map[string]context.CancelFunc)}
	old.keepAlive(p.held)
	does := map[string]code{"a": func(_ context.Context, k *task) *graphdv1.TaskResult {
		return completed(`{"x":` + k.ask(`"sure?"`) + `}`)
	}}
	go p.serve(does)
	run := s.run("g", `{"x":1}`)
	stream, err := s.Resume(t.Context(), &graphdv1.ResumeRequest{
		Resume: &graphdv1.ResumeSpec{
			ThreadId: run.GetThreadId(),
			Single:   &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: text(`"yes"`)}},
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
	require.Equal(t, []string{"a"}, p.ran())
	s.work("new", 4, specs(chain("g", "a")), does)
	require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.wait(run).GetState())
}
