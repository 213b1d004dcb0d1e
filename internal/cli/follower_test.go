package cli_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

const (
	stopped   = graphdv1.EndOfStream_CAUSE_RUN_STOPPED
	draining  = graphdv1.EndOfStream_CAUSE_DRAINING
	running   = graphdv1.RunState_RUN_STATE_RUNNING
	succeeded = graphdv1.RunState_RUN_STATE_SUCCEEDED
)

// A stream that breaks, is drained, and breaks again without an event is shown as
// one.
func TestAStreamGoesOnFromItsLastCursor(t *testing.T) {
	s := &scriptedServer{calls: []scriptedCall{
		{err: refusedError(codes.Unavailable, "SERVER_DRAINING")},
		{events: []*graphdv1.Event{openedEvent(), updateEvent(3, "a", `{"n":1}`)}, err: status.Error(codes.Unavailable, "gone")},
		{events: []*graphdv1.Event{openedEvent(), updateEvent(5, "b", `{"n":2}`), endEvent(draining, 7, running)}},
		{events: []*graphdv1.Event{openedEvent(), {Kind: &graphdv1.Event_Heartbeat{
			Heartbeat: &graphdv1.Heartbeat{Scanned: &graphdv1.Cursor{LogId: "log", Sequence: 9}},
		}}}},
		{events: []*graphdv1.Event{openedEvent(), updateEvent(10, "c", `{"n":3}`), endEvent(stopped, 11, succeeded)}},
	}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g@v1", Thread: "t1", Input: "{}"}))

	require.Len(t, s.streams, 2)
	require.NotEmpty(t, s.streams[0].GetRequestId())
	require.Equal(t, s.streams[0].GetRequestId(), s.streams[1].GetRequestId(), "a repeated call must be the same one")
	require.Equal(t, "v1", s.streams[0].GetRun().GetGraphVersion())
	var after []uint64
	for _, w := range s.watches {
		require.Equal(t, "r1", w.GetRunId())
		require.True(t, w.GetFollow())
		after = append(after, w.GetAfter().GetSequence())
	}
	require.Equal(t, []uint64{3, 7, 9}, after)
	require.Equal(t, 1, strings.Count(out.String(), "thread t1  run r1"), out.String())
	for _, node := range []string{"a\n  n  1", "b\n  n  2", "c\n  n  3", "succeeded"} {
		require.Contains(t, out.String(), node)
	}
}

func TestWhatWillNotGetBetterIsNotTriedAgain(t *testing.T) {
	for name, err := range map[string]error{
		"nobody there": status.Error(codes.Unavailable, "connection refused"),
		"refused":      refusedError(codes.Aborted, "THREAD_BUSY"),
		"full store":   refusedError(codes.ResourceExhausted, "STORE_FULL"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &scriptedServer{calls: []scriptedCall{{err: err}}}
			c, _ := newSession(t, s, "")
			require.Error(t, c.Run(t.Context(), cli.RunOptions{Graph: "g", Input: "{}"}))
			require.Len(t, s.streams, 1)
			require.Empty(t, s.watches)
		})
	}
	s := &scriptedServer{calls: []scriptedCall{
		{events: []*graphdv1.Event{openedEvent()}, err: status.Error(codes.Unavailable, "gone")},
		{err: refusedError(codes.NotFound, "THREAD_NOT_FOUND")},
	}}
	c, _ := newSession(t, s, "")
	err := c.Run(t.Context(), cli.RunOptions{Graph: "g", Input: "{}"})
	require.Equal(t, "THREAD_NOT_FOUND", report.Reason(err))
}

func TestExitCodesOfARun(t *testing.T) {
	for state, code := range map[graphdv1.RunState]int{
		succeeded:                               exit.CodeDone,
		graphdv1.RunState_RUN_STATE_INTERRUPTED: exit.CodeWaiting,
		graphdv1.RunState_RUN_STATE_FAILED:      exit.CodeFailed,
		graphdv1.RunState_RUN_STATE_TIMED_OUT:   exit.CodeFailed,
		graphdv1.RunState_RUN_STATE_CANCELLED:   exit.CodeFailed,
		graphdv1.RunState_RUN_STATE_SUPERSEDED:  exit.CodeFailed,
		graphdv1.RunState_RUN_STATE_UNSPECIFIED: exit.CodeDone,
	} {
		s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, state)}}}}
		c, _ := newSession(t, s, "")
		require.Equal(t, code, exit.CodeOf(c.Run(t.Context(), cli.RunOptions{Graph: "g"})), state)
	}
}

func TestWithoutAChoiceOnlyTasksThatAreHeldUpAreShown(t *testing.T) {
	task := func(phase graphdv1.TaskChange_Phase, why string, delay time.Duration) *graphdv1.Event {
		change := &graphdv1.TaskChange{Phase: phase, Failure: &graphdv1.Failure{Message: why}}
		if delay > 0 {
			change.RetryDelay = durationpb.New(delay)
		}
		return withCursor(1, &graphdv1.Event{Node: "a", Kind: &graphdv1.Event_Task{Task: change}})
	}
	piece := func(json string) *graphdv1.Event {
		return withCursor(1, &graphdv1.Event{Node: "m", Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Value: newPayload(json)}}})
	}
	s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
		openedEvent(),
		piece(`"Hel"`),
		task(graphdv1.TaskChange_PHASE_STARTED, "", 0),
		piece(`"lo"`),
		task(graphdv1.TaskChange_PHASE_RETRYING, "boom", 1234567*time.Microsecond),
		task(graphdv1.TaskChange_PHASE_UNASSIGNED, "no worker", 0),
		task(graphdv1.TaskChange_PHASE_RESTARTED, "", 0),
		task(graphdv1.TaskChange_PHASE_RESTARTED, "its worker was lost", 0),
		piece(`"Hello"`),
		endEvent(stopped, 2, succeeded),
	}}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
	require.Equal(t, "thread t1  run r1\n| Hello\na failed, again in 1.235s: boom\na: no worker\n"+
		"a begins anew; what it has shown since its last answer or memo comes again\na begins anew: its worker was lost\n| Hello\nsucceeded\n  n  1\n", out.String())
}

func TestEveryKindOfEventIsShown(t *testing.T) {
	s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
		openedEvent(),
		withCursor(1, &graphdv1.Event{Node: "a", Attempt: 2, Kind: &graphdv1.Event_Task{Task: &graphdv1.TaskChange{
			Phase:   graphdv1.TaskChange_PHASE_FAILED,
			Failure: &graphdv1.Failure{Reason: "NODE_FAILED", Message: "boom", Node: "a", Stack: "main.go:1\n"},
		}}}),
		withCursor(1, &graphdv1.Event{Node: "m", Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Value: newPayload(`"Hel"`)}}}),
		withCursor(1, &graphdv1.Event{Node: "m", Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Value: newPayload(`"lo"`)}}}),
		withCursor(2, &graphdv1.Event{
			Node: "c", Namespace: []string{"outer:1"},
			Kind: &graphdv1.Event_Custom{Custom: &graphdv1.CustomEvent{Name: "progress", Value: newPayload("9007199254740993")}},
		}),
		withCursor(3, &graphdv1.Event{Step: 4, Kind: &graphdv1.Event_Checkpoint{Checkpoint: &graphdv1.CheckpointSaved{
			Checkpoint: &graphdv1.CheckpointRef{CheckpointId: "cp"}, Next: []*graphdv1.DueTask{{Node: "z"}},
		}}}),
		withCursor(3, &graphdv1.Event{Kind: &graphdv1.Event_Gap{Gap: &graphdv1.Gap{}}}),
		withCursor(4, &graphdv1.Event{Node: "u", Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{Values: newPayload("null")}}}),
		withCursor(5, &graphdv1.Event{Node: "u", ValueOmitted: true, Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{}}}),
		withCursor(6, &graphdv1.Event{Kind: &graphdv1.Event_RunState{RunState: &graphdv1.RunStateChanged{
			State: graphdv1.RunState_RUN_STATE_FAILED, Failure: &graphdv1.Failure{Reason: "NODE_FAILED", Message: "boom"},
		}}}),
		{ThreadId: "t1", Kind: &graphdv1.Event_End{End: &graphdv1.EndOfStream{
			Cause: graphdv1.EndOfStream_CAUSE_LOG_END, ResumeAt: &graphdv1.Cursor{LogId: "log", Sequence: 6},
		}}},
	}}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.Watch(t.Context(), cli.WatchOptions{
		Thread: "t1", NoFollow: true, Events: []string{"tasks", "updates", "messages", "custom", "checkpoints"},
	}))
	require.Equal(t, `thread t1  run r1
a failed (attempt 2)
  a: NODE_FAILED: boom
    | main.go:1
| Hello
outer/c progress  9007199254740993
checkpoint cp  step 4  next: z
(some passing events were dropped: this reader was slow)
u
  (no update)
u
  left out: larger than a message of the server may be (serve --max-message); what it made of the state; see
    graphd state t1 --keys KEY
run r1 failed
  NODE_FAILED: boom
end of the log, cursor log:6
`, out.String())
}

// A person who waits is told the reason.
func TestWhatAStreamWaitsForIsNamed(t *testing.T) {
	for want, err := range map[string]error{
		"the server's store does not answer (STORE_UNAVAILABLE); trying again":                                   refusedError(codes.Unavailable, "STORE_UNAVAILABLE"),
		"the store did not say what became of the call (OUTCOME_UNKNOWN); asking again with the same request id": refusedError(codes.Unavailable, "OUTCOME_UNKNOWN"),
		"the server lacks the keys of the token's issuer (KEYS_UNAVAILABLE); trying again":                       refusedError(codes.Unavailable, "KEYS_UNAVAILABLE"),
		"the server's store has more changes to write than it can (STORE_BUSY); trying again":                    refusedError(codes.Unavailable, "STORE_BUSY"),
		"the server is full (TOO_MANY_RUNS); trying again":                                                       refusedError(codes.ResourceExhausted, "TOO_MANY_RUNS"),
		"the server is full (TOO_MANY_SUBSCRIBERS, --max-streams); trying again": refusedWithMetadata(codes.ResourceExhausted, "TOO_MANY_SUBSCRIBERS",
			map[string]string{"limit": "4000", "option": "max-streams"}),
		"the server is full (TOO_MANY_SUBSCRIBERS); trying again": refusedWithMetadata(codes.ResourceExhausted, "TOO_MANY_SUBSCRIBERS",
			map[string]string{"limit": "64"}),
		"the server is full (TOO_MANY_REQUESTS, --max-open-calls); trying again": refusedWithMetadata(codes.ResourceExhausted, "TOO_MANY_REQUESTS",
			map[string]string{"limit": "max-open-calls", "most": "10000"}),
		"the stream ended (SERVER_DRAINING); looking for the server again": refusedError(codes.Unavailable, "SERVER_DRAINING"),
	} {
		s := &scriptedServer{calls: []scriptedCall{{err: err}, {events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 1, succeeded)}}}}
		c, _ := newSession(t, s, "")
		var notes strings.Builder
		c.Err = &notes
		require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g", Input: "{}"}))
		require.Contains(t, notes.String(), want)
		require.Len(t, s.streams, 2)
		require.Equal(t, s.streams[0].GetRequestId(), s.streams[1].GetRequestId())
	}
}

// notifyingBuilder closes written after a write.
type notifyingBuilder struct {
	strings.Builder
	once    sync.Once
	written chan struct{}
}

func (n *notifyingBuilder) Write(b []byte) (int, error) {
	defer n.once.Do(func() { close(n.written) })
	return n.Builder.Write(b)
}

// While a store takes no changes its streams are silent. That is reported once, and
// the stream continues.
func TestAStreamThatIsSilentForItsStoreIsExplained(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"STORE_FULL":     "the server's store is full (STORE_FULL); what runs goes on by itself when there is space\n",
		"STORE_REPLACED": "the server's store is not the one that the server opened (STORE_REPLACED); what runs goes on by itself when that is back, the server's log says how\n",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			said := &notifyingBuilder{written: make(chan struct{})}
			s := &scriptedServer{refusal: reason, calls: []scriptedCall{{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, succeeded)}, lastEventGate: said.written}}}
			c, out := newSession(t, s, "")
			c.Err = said
			require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g", Thread: "t1", Input: "{}"}))
			require.Equal(t, want, said.String())
			require.Equal(t, "thread t1  run r1\nsucceeded\n  n  1\n", out.String())
		})
	}
}

func TestColoursOnlyWhereTheyCanBeSeen(t *testing.T) {
	for _, color := range []bool{false, true} {
		s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
			openedEvent(), updateEvent(1, "a", `{"n":1}`), endEvent(stopped, 2, succeeded),
		}}}}
		c, out := newSession(t, s, "")
		c.HasColor = color
		require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
		require.Equal(t, color, strings.Contains(out.String(), "\x1b["), out.String())
	}
}
