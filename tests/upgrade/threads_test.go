package upgrade_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// years is longer than a frozen store will be kept.
const years = 3650 * 24 * time.Hour

// large is a text that stores keep beside the checkpoints that have it.
func large(n int) string { return strings.Repeat("0123456789abcdef", n/16) }

// populate makes threads of all kinds that a store may hold for long.
func (s *server) populate() {
	s.tb.Helper()
	worker := s.employ(s.tb)
	for _, thread := range []string{"waiting", "waiting-here"} {
		s.begin(thread, "review", `{"subject":"`+thread+`","log":["`+large(64)+`"]}`)
	}
	s.begin("waiting-large", "review", `{"subject":"`+large(2000)+`ü"}`)
	s.begin("waiting-below", "errand", `{"subject":"below"}`)
	s.begin("waiting-beside", "pair", `{"subject":"beside"}`)
	s.answer("waiting-beside", `"first"`, false)
	s.begin("waiting-paid", "pay", `{"amount":9007199254740993}`)
	s.begin("answered", "review", `{"subject":"answered"}`)
	s.answer("answered", `{"ok":true,"why":"it is"}`, true)
	s.begin("answered-below", "errand", `{"subject":"below"}`)
	s.answer("answered-below", `{"ok":true}`, true)
	s.begin("dismissed", "pair", `{"subject":"dismissed"}`)
	s.dismiss("dismissed")
	s.begin("long", "loop", `{"text":"`+large(400)+`","limit":30}`)
	s.begin("short", "loop", `{"text":"short","limit":3}`)
	s.begin("again", "loop", `{"text":"first","limit":2}`)
	s.begin("again", "loop", `{"text":"second","limit":5}`)
	s.begin("failed", "broken", `{"x":1}`)
	s.edit("edited")
	s.fork("short", "forked")
	s.copy("waiting", "copied")
	s.create("empty")
	worker.stop()
	s.leave("queued")
	s.cancel("cancelled")
}

// begin makes a run and waits until it stops.
func (s *server) begin(thread, graph, input string) *graphdv1.Run {
	s.tb.Helper()
	run := s.start(thread, graph, input)
	run, err := s.WaitRun(s.tb.Context(), &graphdv1.WaitRunRequest{
		ThreadId: thread, RunId: run.GetRunId(), Wait: durationpb.New(patience),
	})
	require.NoError(s.tb, err)
	require.NotEqual(s.tb, graphdv1.RunState_RUN_STATE_RUNNING, run.GetState(), thread)
	return run
}

func (s *server) start(thread, graph, input string) *graphdv1.Run {
	s.tb.Helper()
	run, err := s.StartRun(s.tb.Context(), &graphdv1.StartRunRequest{
		RequestId: thread + "-begin-" + fmt.Sprint(len(input)),
		Run: &graphdv1.RunSpec{
			ThreadId: thread, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: text(input)},
			Metadata: map[string]string{"made": "by " + thread}, Concurrency: graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE,
		},
	})
	require.NoError(s.tb, err)
	return run
}

// answer answers the oldest open question of a thread, and waits until the run
// stops when it goes on.
func (s *server) answer(thread, value string, goesOn bool) *graphdv1.Run {
	s.tb.Helper()
	return s.resume(thread, goesOn, &graphdv1.InterruptResponse{
		Outcome: &graphdv1.InterruptResponse_Value{Value: text(value)}, Note: "noted",
	})
}

func (s *server) dismiss(thread string) {
	s.tb.Helper()
	s.resume(thread, false, &graphdv1.InterruptResponse{
		Outcome: &graphdv1.InterruptResponse_Dismissal{Dismissal: &graphdv1.Dismissal{Reason: "not now"}},
	})
}

func (s *server) resume(thread string, goesOn bool, response *graphdv1.InterruptResponse) *graphdv1.Run {
	s.tb.Helper()
	response.InterruptId = s.open(thread)[0].GetInterruptId()
	run, err := s.ResumeRun(s.tb.Context(), &graphdv1.ResumeRunRequest{
		RequestId: "answer-" + response.GetInterruptId(),
		Resume: &graphdv1.ResumeSpec{
			ThreadId: thread, Responses: []*graphdv1.InterruptResponse{response},
			Coverage: graphdv1.ResumeCoverage_RESUME_COVERAGE_COLLECT,
		},
	})
	require.NoError(s.tb, err)
	if !goesOn {
		return run
	}
	run, err = s.WaitRun(s.tb.Context(), &graphdv1.WaitRunRequest{
		ThreadId: thread, RunId: run.GetRunId(), Wait: durationpb.New(patience),
	})
	require.NoError(s.tb, err)
	return run
}

// open lists the open questions of a thread, oldest first.
func (s *server) open(thread string) []*graphdv1.Interrupt {
	s.tb.Helper()
	list, err := s.ListInterrupts(s.tb.Context(), &graphdv1.ListInterruptsRequest{ThreadId: thread})
	require.NoError(s.tb, err)
	require.NotEmpty(s.tb, list.GetInterrupts(), thread)
	return list.GetInterrupts()
}

func (s *server) edit(thread string) {
	s.tb.Helper()
	s.begin(thread, "loop", `{"text":"edited","limit":2}`)
	_, err := s.UpdateState(s.tb.Context(), &graphdv1.UpdateStateRequest{
		ThreadId: thread, Values: text(`{"text":"` + large(320) + `","list":["by hand"]}`), AsNode: "step", RequestId: "edit",
	})
	require.NoError(s.tb, err)
}

// fork copies a thread up to a checkpoint in the middle of it.
func (s *server) fork(source, thread string) {
	s.tb.Helper()
	history, err := s.ListCheckpoints(s.tb.Context(), &graphdv1.ListCheckpointsRequest{ThreadId: source})
	require.NoError(s.tb, err)
	middle := history.GetCheckpoints()[len(history.GetCheckpoints())/2]
	_, err = s.ForkThread(s.tb.Context(), &graphdv1.ForkThreadRequest{
		SourceThreadId: source, ThreadId: thread, RequestId: "fork",
		At: &graphdv1.CheckpointRef{CheckpointId: middle.GetCheckpoint().GetCheckpointId()},
	})
	require.NoError(s.tb, err)
}

func (s *server) copy(source, thread string) {
	s.tb.Helper()
	_, err := s.CopyThread(s.tb.Context(), &graphdv1.CopyThreadRequest{SourceThreadId: source, ThreadId: thread, RequestId: "copy"})
	require.NoError(s.tb, err)
}

func (s *server) create(thread string) {
	s.tb.Helper()
	_, err := s.CreateThread(s.tb.Context(), &graphdv1.CreateThreadRequest{
		ThreadId: thread, RequestId: "create",
		Thread: &graphdv1.Thread{
			Graph: "loop", Metadata: map[string]string{"a": "1"}, Expiration: &graphdv1.Thread_Ttl{Ttl: durationpb.New(years)},
		},
	})
	require.NoError(s.tb, err)
}

// leave begins a run for which there is no worker, and two that wait for it.
func (s *server) leave(thread string) {
	s.tb.Helper()
	for _, amount := range []string{"1", "20", "300"} {
		s.start(thread, "pay", `{"amount":`+amount+`}`)
	}
}

func (s *server) cancel(thread string) {
	s.tb.Helper()
	run := s.start(thread, "pay", `{"amount":1}`)
	_, err := s.CancelRun(s.tb.Context(), &graphdv1.CancelRunRequest{
		ThreadId: thread, RunId: run.GetRunId(), Wait: true, Reason: "not wanted any more",
	})
	require.NoError(s.tb, err)
}
