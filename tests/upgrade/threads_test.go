package upgrade_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/tests/harness"
)

// longTTL is longer than a frozen store will be kept.
const longTTL = 3650 * 24 * time.Hour

// largeText is a text that stores keep beside the checkpoints that have it.
func largeText(n int) string { return strings.Repeat("0123456789abcdef", n/16) }

// createThreads makes threads of all kinds that a store may hold for long.
func (s *server) createThreads() {
	s.tb.Helper()
	worker := s.startPayWorker(s.tb)
	for _, thread := range []string{"waiting", "waiting-here"} {
		s.runUntilStopped(thread, "review", `{"subject":"`+thread+`","log":["`+largeText(64)+`"]}`)
	}
	s.runUntilStopped("waiting-large", "review", `{"subject":"`+largeText(2000)+`ü"}`)
	s.runUntilStopped("waiting-below", "errand", `{"subject":"below"}`)
	s.runUntilStopped("waiting-beside", "pair", `{"subject":"beside"}`)
	s.answerOldest("waiting-beside", `"first"`, false)
	s.runUntilStopped("waiting-paid", "pay", `{"amount":9007199254740993}`)
	s.runUntilStopped("answered", "review", `{"subject":"answered"}`)
	s.answerOldest("answered", `{"ok":true,"why":"it is"}`, true)
	s.runUntilStopped("answered-below", "errand", `{"subject":"below"}`)
	s.answerOldest("answered-below", `{"ok":true}`, true)
	s.runUntilStopped("dismissed", "pair", `{"subject":"dismissed"}`)
	s.dismissOldest("dismissed")
	s.runUntilStopped("long", "loop", `{"text":"`+largeText(400)+`","limit":30}`)
	s.runUntilStopped("short", "loop", `{"text":"short","limit":3}`)
	s.runUntilStopped("again", "loop", `{"text":"first","limit":2}`)
	s.runUntilStopped("again", "loop", `{"text":"second","limit":5}`)
	s.runUntilStopped("failed", "broken", `{"x":1}`)
	s.createEdited("edited")
	s.forkThread("short", "forked")
	s.copyThread("waiting", "copied")
	s.createThread("empty")
	worker.stop()
	s.createUnserved("queued")
	s.createCancelled("cancelled")
}

// runUntilStopped makes a run and waits until it stops.
func (s *server) runUntilStopped(thread, graph, input string) *graphdv1.Run {
	s.tb.Helper()
	run := s.startRun(thread, graph, input)
	run, err := s.WaitRun(s.tb.Context(), &graphdv1.WaitRunRequest{
		ThreadId: thread, RunId: run.GetRunId(), Wait: durationpb.New(waitTimeout),
	})
	require.NoError(s.tb, err)
	require.NotEqual(s.tb, graphdv1.RunState_RUN_STATE_RUNNING, run.GetState(), thread)
	return run
}

func (s *server) startRun(thread, graph, input string) *graphdv1.Run {
	s.tb.Helper()
	run, err := s.StartRun(s.tb.Context(), &graphdv1.StartRunRequest{
		RequestId: thread + "-begin-" + fmt.Sprint(len(input)),
		Run: &graphdv1.RunSpec{
			ThreadId: thread, CreateThread: true, Graph: graph, Start: &graphdv1.RunSpec_Input{Input: harness.NewPayload(input)},
			Metadata: map[string]string{"made": "by " + thread}, Concurrency: graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE,
		},
	})
	require.NoError(s.tb, err)
	return run
}

// answerOldest answers the oldest open interrupt of a thread, and waits until the run
// stops when it goes on.
func (s *server) answerOldest(thread, value string, goesOn bool) *graphdv1.Run {
	s.tb.Helper()
	return s.respondToOldest(thread, goesOn, &graphdv1.InterruptResponse{
		Outcome: &graphdv1.InterruptResponse_Value{Value: harness.NewPayload(value)}, Note: "noted",
	})
}

func (s *server) dismissOldest(thread string) {
	s.tb.Helper()
	s.respondToOldest(thread, false, &graphdv1.InterruptResponse{
		Outcome: &graphdv1.InterruptResponse_Dismissal{Dismissal: &graphdv1.Dismissal{Reason: "not now"}},
	})
}

func (s *server) respondToOldest(thread string, goesOn bool, response *graphdv1.InterruptResponse) *graphdv1.Run {
	s.tb.Helper()
	response.InterruptId = s.listOpen(thread)[0].GetInterruptId()
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
		ThreadId: thread, RunId: run.GetRunId(), Wait: durationpb.New(waitTimeout),
	})
	require.NoError(s.tb, err)
	return run
}

// listOpen lists the open interrupts of a thread, oldest first.
func (s *server) listOpen(thread string) []*graphdv1.Interrupt {
	s.tb.Helper()
	list, err := s.ListInterrupts(s.tb.Context(), &graphdv1.ListInterruptsRequest{ThreadId: thread})
	require.NoError(s.tb, err)
	require.NotEmpty(s.tb, list.GetInterrupts(), thread)
	return list.GetInterrupts()
}

func (s *server) createEdited(thread string) {
	s.tb.Helper()
	s.runUntilStopped(thread, "loop", `{"text":"edited","limit":2}`)
	_, err := s.UpdateState(s.tb.Context(), &graphdv1.UpdateStateRequest{
		ThreadId: thread, Values: harness.NewPayload(`{"text":"` + largeText(320) + `","list":["by hand"]}`), AsNode: "step", RequestId: "edit",
	})
	require.NoError(s.tb, err)
}

// forkThread copies a thread up to a checkpoint in the middle of it.
func (s *server) forkThread(source, thread string) {
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

func (s *server) copyThread(source, thread string) {
	s.tb.Helper()
	_, err := s.CopyThread(s.tb.Context(), &graphdv1.CopyThreadRequest{SourceThreadId: source, ThreadId: thread, RequestId: "copy"})
	require.NoError(s.tb, err)
}

func (s *server) createThread(thread string) {
	s.tb.Helper()
	_, err := s.CreateThread(s.tb.Context(), &graphdv1.CreateThreadRequest{
		ThreadId: thread, RequestId: "create",
		Thread: &graphdv1.Thread{
			Graph: "loop", Metadata: map[string]string{"a": "1"}, Expiration: &graphdv1.Thread_Ttl{Ttl: durationpb.New(longTTL)},
		},
	})
	require.NoError(s.tb, err)
}

// createUnserved begins a run for which there is no worker, and two that wait for it.
func (s *server) createUnserved(thread string) {
	s.tb.Helper()
	for _, amount := range []string{"1", "20", "300"} {
		s.startRun(thread, "pay", `{"amount":`+amount+`}`)
	}
}

func (s *server) createCancelled(thread string) {
	s.tb.Helper()
	run := s.startRun(thread, "pay", `{"amount":1}`)
	_, err := s.CancelRun(s.tb.Context(), &graphdv1.CancelRunRequest{
		ThreadId: thread, RunId: run.GetRunId(), Wait: true, Reason: "not wanted any more",
	})
	require.NoError(s.tb, err)
}
