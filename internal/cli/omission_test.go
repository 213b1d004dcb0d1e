package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

const leftOut = "left out: larger than a message of the server may be (serve --max-message)"

// omittedEvent is an event as a server sends it that has no room for its value.
func omittedEvent(e *graphdv1.Event) *graphdv1.Event {
	e.ValueOmitted = true
	return withCursor(1, e)
}

// omittedInterrupt is a question in an event without values.
func omittedInterrupt(id string, change func(*graphdv1.Interrupt)) *graphdv1.Interrupt {
	return newPayInterrupt(id, "null", func(q *graphdv1.Interrupt) {
		q.Value, q.Message = nil, "Pay?"
		if change != nil {
			change(q)
		}
	})
}

// A value that an event comes without is not shown as an empty one, and the command
// that shows it is printed.
func TestAValueThatIsLeftOutNamesTheCommandThatShowsIt(t *testing.T) {
	at := &graphdv1.CheckpointRef{CheckpointId: "cp"}
	for name, test := range map[string]struct {
		event *graphdv1.Event
		want  string
	}{
		"values": {
			&graphdv1.Event{Step: 1, Kind: &graphdv1.Event_Values{Values: &graphdv1.StateValues{Checkpoint: at, Next: []string{"z"}}}},
			"state  step 1\n  " + leftOut + "; see\n    graphd state t1 --checkpoint cp --keys KEY\n  next: z\n",
		},
		"a snapshot": {
			&graphdv1.Event{Kind: &graphdv1.Event_Values{Values: &graphdv1.StateValues{
				Checkpoint: at, Interrupts: []*graphdv1.Interrupt{omittedInterrupt("q1", nil)},
			}}},
			"state  step 0\n  " + leftOut + "; see\n    graphd state t1 --checkpoint cp --keys KEY\n  " +
				leftOut + "; its questions; see\n    graphd inbox --thread t1\n  ask asks: Pay?\n    id  q1\n",
		},
		"a snapshot with its questions": {
			&graphdv1.Event{Kind: &graphdv1.Event_Values{Values: &graphdv1.StateValues{
				Checkpoint: at, Interrupts: []*graphdv1.Interrupt{newPayInterrupt("q1", "7", nil)},
			}}},
			"state  step 0\n  " + leftOut + "; see\n    graphd state t1 --checkpoint cp --keys KEY\n  ask asks\n    id  q1\n    value  7\n",
		},
		"values of a subgraph": {
			&graphdv1.Event{Kind: &graphdv1.Event_Values{Values: &graphdv1.StateValues{
				Checkpoint: &graphdv1.CheckpointRef{CheckpointId: "cp", Namespace: []string{"sub:1"}},
			}}},
			"state  step 0\n  " + leftOut + "; GetState reads it by keys\n",
		},
		"a checkpoint": {
			&graphdv1.Event{Kind: &graphdv1.Event_Checkpoint{Checkpoint: &graphdv1.CheckpointSaved{Checkpoint: at}}},
			"checkpoint cp  step 0\n  " + leftOut + "; see\n    graphd state t1 --checkpoint cp --keys KEY\n",
		},
		"a custom event": {
			&graphdv1.Event{Node: "c", Kind: &graphdv1.Event_Custom{Custom: &graphdv1.CustomEvent{Name: "progress"}}},
			"c progress\n  " + leftOut + "\n",
		},
		"a message": {
			&graphdv1.Event{Node: "m", Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{}}},
			"m: a part of a message\n  " + leftOut + "\n",
		},
		"a question": {
			&graphdv1.Event{Kind: &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{
				Interrupts: []*graphdv1.Interrupt{omittedInterrupt("q1", nil)},
			}}},
			"__interrupt__\n  ask asks: Pay?\n    id  q1\n  " + leftOut + "; see\n    graphd inbox --thread t1\n",
		},
		"an answer": {
			&graphdv1.Event{Kind: &graphdv1.Event_InterruptResolved{InterruptResolved: &graphdv1.InterruptResolved{
				Interrupts: []*graphdv1.Interrupt{omittedInterrupt("q1", func(q *graphdv1.Interrupt) { q.State = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED })},
			}}},
			"ask: question consumed\n  " + leftOut + "; see\n    graphd inbox --thread t1 --filter 'state = \"*\"'\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
				openedEvent(), updateEvent(1, "before", `{"n":1}`), omittedEvent(test.event), endEvent(stopped, 3, succeeded),
			}}}}
			c, out := newSession(t, s, "")
			require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
			require.Contains(t, out.String(), "before\n  n  1\n"+test.want+"succeeded\n")
		})
	}
}

// A message that was being shown ends its line before the part that is missing.
func TestAPartOfAMessageThatIsLeftOutIsALineOfItsOwn(t *testing.T) {
	piece := func(value *graphdv1.Payload) *graphdv1.Event {
		return withCursor(1, &graphdv1.Event{Node: "m", Kind: &graphdv1.Event_Message{Message: &graphdv1.MessageDelta{Value: value}}})
	}
	s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
		openedEvent(), piece(newPayload(`"Hel"`)), omittedEvent(piece(nil)), piece(newPayload(`"lo"`)), endEvent(stopped, 3, succeeded),
	}}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
	require.Contains(t, out.String(), "| Hel\nm: a part of a message\n  "+leftOut+"\n| lo\nsucceeded\n")
}

// What differs from a question before is named, and not shown as nothing, when the
// values of one of them are left out.
func TestQuestionsWithoutValuesAreNotCompared(t *testing.T) {
	resolved := func(q *graphdv1.Interrupt) *graphdv1.Event {
		return withCursor(1, &graphdv1.Event{Kind: &graphdv1.Event_InterruptResolved{
			InterruptResolved: &graphdv1.InterruptResolved{Interrupts: []*graphdv1.Interrupt{q}},
		}})
	}
	raised := func(q *graphdv1.Interrupt) *graphdv1.Event {
		return withCursor(2, &graphdv1.Event{Kind: &graphdv1.Event_Interrupt{
			Interrupt: &graphdv1.InterruptRaised{Interrupts: []*graphdv1.Interrupt{q}},
		}})
	}
	withoutValues := func(q *graphdv1.Interrupt) *graphdv1.Interrupt {
		q.Value, q.Response = nil, nil
		return q
	}
	for name, events := range map[string][]*graphdv1.Event{
		"before": {omittedEvent(resolved(withoutValues(supersededInterrupt()))), raised(replacingInterrupt())},
		"now":    {resolved(supersededInterrupt()), omittedEvent(raised(withoutValues(replacingInterrupt())))},
	} {
		t.Run(name, func(t *testing.T) {
			all := append(append([]*graphdv1.Event{openedEvent()}, events...), endEvent(stopped, 3, succeeded))
			s := &scriptedServer{calls: []scriptedCall{{events: all}}}
			c, out := newSession(t, s, "")
			require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
			require.Contains(t, out.String(), "asked again  differs from the question before: /items/0/a~1b, /pay, /to, schema\n")
			require.NotContains(t, out.String(), "nothing")
		})
	}
}

// Programs get the mark.
func TestJSONLinesCarryTheMark(t *testing.T) {
	s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{
		openedEvent(), omittedEvent(&graphdv1.Event{Node: "u", Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{}}}),
		endEvent(stopped, 3, succeeded),
	}}}}
	c, out := newSession(t, s, "")
	c.Format = output.JSONL
	require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
	require.Contains(t, out.String(), `"node":"u","valueOmitted":true`)
}

// A person answers a question that was shown as a whole, also where the stream had no
// room for it.
func TestADemoShowsTheWholeQuestionBeforeItAsks(t *testing.T) {
	hidden := omittedEvent(&graphdv1.Event{Kind: &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{
		Interrupts: []*graphdv1.Interrupt{omittedInterrupt("q1", nil)},
	}}})
	whole := omittedInterrupt("q1", func(q *graphdv1.Interrupt) { q.Value = newPayload(`{"amount":100}`) })
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{whole}, calls: []scriptedCall{
		{events: []*graphdv1.Event{openedEvent(), hidden, endEvent(stopped, 2, graphdv1.RunState_RUN_STATE_INTERRUPTED)}},
	}}
	c, out := newSession(t, s, "true\n")
	c.IsTerminal = true
	err := c.RunDemo(t.Context(), cli.DemoOptions{Thread: "t1"}) // it waits since an earlier call
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(err), "the second question has no answer")
	rounds := strings.Split(out.String(), "amount  100\n")
	require.Len(t, rounds, 3, "the question is shown before each answer: %s", out)
	require.NotContains(t, rounds[0], "> ")
	require.Contains(t, rounds[1], "> ")
	require.Contains(t, rounds[2], "> ")
}

// updatedThread answers an update without the state, for which there is no room.
type updatedThread struct {
	graphdv1.ThreadServiceClient
}

func (updatedThread) UpdateState(context.Context, *graphdv1.UpdateStateRequest, ...grpc.CallOption) (*graphdv1.StateSnapshot, error) {
	return &graphdv1.StateSnapshot{Checkpoint: &graphdv1.CheckpointRef{CheckpointId: "cp"}, Next: []string{"z"}}, nil
}

func TestAnUpdateNamesTheCommandThatShowsTheState(t *testing.T) {
	c, out := newSession(t, &scriptedServer{}, "")
	c.Threads = updatedThread{}
	require.NoError(t, c.UpdateState(t.Context(), cli.UpdateOptions{Thread: "t1", Values: `{"n":1}`}))
	require.Contains(t, out.String(), "next: z\n"+leftOut+"; see\n  graphd state t1 --checkpoint cp --keys KEY\n")
}
