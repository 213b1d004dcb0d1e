package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

func newPayInterrupt(id, value string, more func(*graphdv1.Interrupt)) *graphdv1.Interrupt {
	q := &graphdv1.Interrupt{
		InterruptId: id, ThreadId: "t1", Node: "ask", Value: newPayload(value), State: graphdv1.InterruptState_INTERRUPT_STATE_OPEN,
	}
	if more != nil {
		more(q)
	}
	return q
}

func supersededInterrupt() *graphdv1.Interrupt {
	return newPayInterrupt("one", `{"pay":100,"items":[{"a/b":1}]}`, func(q *graphdv1.Interrupt) {
		q.State, q.Response = graphdv1.InterruptState_INTERRUPT_STATE_SUPERSEDED, newPayload("true")
	})
}

func replacingInterrupt() *graphdv1.Interrupt {
	return newPayInterrupt("two", `{"pay":99999,"items":[{"a/b":"x"}]}`, func(q *graphdv1.Interrupt) {
		q.Round, q.Replaces, q.Differs = 1, "one", []string{"/items/0/a~1b", "/pay", "/to", "schema"}
		q.ResponseSchema = newPayload(`{"type":"boolean"}`)
	})
}

const changedPartsText = `    asked again  differs from what was answered with true
      /items/0/a~1b  1 → "x"
      /pay  100 → 99999
      /to  nothing → nothing
      schema  nothing → {"type":"boolean"}
`

// A question that replaces another shows the earlier answer: in a stream, in the
// inbox, and in the prompt at a terminal.
func TestASecondQuestionShowsTheFirst(t *testing.T) {
	interrupt := &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{Interrupts: []*graphdv1.Interrupt{replacingInterrupt()}}}
	resolved := &graphdv1.Event_InterruptResolved{
		InterruptResolved: &graphdv1.InterruptResolved{Interrupts: []*graphdv1.Interrupt{supersededInterrupt()}},
	}
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{replacingInterrupt()}, replaced: supersededInterrupt(), calls: []scriptedCall{{events: []*graphdv1.Event{
		openedEvent(), withCursor(1, &graphdv1.Event{Kind: resolved}), withCursor(2, &graphdv1.Event{Kind: interrupt}),
		endEvent(stopped, 3, graphdv1.RunState_RUN_STATE_INTERRUPTED),
	}}}}
	c, out := newSession(t, s, "")
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Run(t.Context(), cli.RunOptions{Graph: "g"})))
	require.Contains(t, out.String(), "ask: question superseded, its answer is not used  true\n")
	require.Contains(t, out.String(), changedPartsText)

	c, out = newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1"}))
	require.Contains(t, out.String(), changedPartsText)

	c, out = newSession(t, s, "")
	c.IsTerminal = true
	require.Error(t, c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"}))
	require.Contains(t, out.String(), changedPartsText)

	for want, change := range map[string]func(){
		"differs from what was asked before, without an answer\n": func() { s.replaced.Response = nil },
		"differs from what was dismissed\n":                       func() { s.replaced.Dismissed = true },
	} {
		s.replaced = supersededInterrupt()
		change()
		c, out = newSession(t, s, "")
		require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1"}))
		require.Contains(t, out.String(), want)
	}
	s.replaced = nil // it was pruned
	c, out = newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1"}))
	require.Contains(t, out.String(), "    asked again  differs from the question before: /items/0/a~1b, /pay, /to, schema\n")
}

// An answer that was used for another question leaves a trace.
func TestAnAcceptedAnswerSaysWhatDiffered(t *testing.T) {
	used := newPayInterrupt("one", `{"pay":100}`, func(q *graphdv1.Interrupt) {
		q.State, q.Response = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, newPayload("true")
		q.Accepted = []string{"/pay", "message"}
	})
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{used}, calls: []scriptedCall{{events: []*graphdv1.Event{
		openedEvent(), withCursor(1, &graphdv1.Event{Kind: &graphdv1.Event_InterruptResolved{
			InterruptResolved: &graphdv1.InterruptResolved{Interrupts: []*graphdv1.Interrupt{used}},
		}}), endEvent(stopped, 3, succeeded),
	}}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
	require.Contains(t, out.String(),
		"ask: the answer was used (accepted)  true\n  for what the node asked later, which differs: /pay, message\n")

	c, out = newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1", Filter: `state = "*"`}))
	require.Contains(t, out.String(),
		"    answered  true\n    accepted  for what the node asked later, which differs: /pay, message\n")
}

// A question says who may answer, and how they have voted.
func TestAQuestionSaysWhoMayAnswer(t *testing.T) {
	open := newPayInterrupt("one", `{"pay":100}`, func(q *graphdv1.Interrupt) {
		q.People = &graphdv1.People{Users: []string{"ana"}, Groups: []string{"finance\x1b[2J"}, Approvals: 2, NotRequester: true, Requester: "eva"}
		q.Votes = []*graphdv1.Vote{{Principal: "ana", Value: newPayload("true"), Agrees: true}, {Principal: "ben"}}
	})
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{open}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1"}))
	require.Contains(t, out.String(), "    for  ana; members of finance\\u{1b}[2J; 2 must agree; not eva\n")
	require.Contains(t, out.String(), "    vote  ana  true")
	require.Contains(t, out.String(), "    vote  ben  declines")
}

// Who did something is shown where it is known, and is fit for a terminal.
func TestEventsAndQuestionsSayByWhom(t *testing.T) {
	answered := newPayInterrupt("one", `{"pay":100}`, func(q *graphdv1.Interrupt) {
		q.State, q.Response = graphdv1.InterruptState_INTERRUPT_STATE_CONSUMED, newPayload("true")
		q.Responder, q.ResponderHow, q.ResponseMethod = "ben\u202e", "api key", "graphd.v1.GraphService/ResumeRun"
		q.ResponseTime = timestamppb.New(time.Date(2026, 11, 24, 9, 30, 0, 0, time.UTC))
	})
	opened := openedEvent()
	opened.GetOpened().GetRun().StartedBy = "ana"
	resolved := withCursor(1, &graphdv1.Event{Actor: answered.GetResponder(), Kind: &graphdv1.Event_InterruptResolved{
		InterruptResolved: &graphdv1.InterruptResolved{Interrupts: []*graphdv1.Interrupt{answered}},
	}})
	byHand := updateEvent(2, "a", `{"x":1}`)
	byHand.Actor = "eve"
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{answered}, calls: []scriptedCall{{events: []*graphdv1.Event{
		opened, resolved, byHand, updateEvent(3, "b", `{"x":2}`), endEvent(stopped, 4, succeeded),
	}}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.Run(t.Context(), cli.RunOptions{Graph: "g"}))
	for _, want := range []string{
		"run r1  started by ana\n", `ask: question consumed by ben\u{202e}  true` + "\n", "\na  by eve\n", "\nb\n",
	} {
		require.Contains(t, out.String(), want)
	}

	c, out = newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1", Filter: `state = "*"`}))
	by := `    by  ben\u{202e}  ` + output.FormatTime(answered.GetResponseTime()) + "  api key, graphd.v1.GraphService/ResumeRun\n"
	require.Contains(t, out.String(), "    answered  true\n"+by)

	answered.Response, answered.Dismissed, answered.ResponseTime = nil, true, nil
	c, out = newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1", Filter: `state = "*"`}))
	require.Contains(t, out.String(), `    by  ben\u{202e}`+"\n", "an earlier version kept the name alone")
}

// Messages of several lines have a bar before each further line. A line break in an
// id is shown as a mark.
func TestMessagesOfSeveralLines(t *testing.T) {
	q := newPayInterrupt("on\ne", "null", func(q *graphdv1.Interrupt) {
		q.Message = "Freigeben für Müller?\nZeile 2\r\n\n- Punkt\rx\n"
	})
	failed := endEvent(stopped, 3, graphdv1.RunState_RUN_STATE_FAILED)
	failed.GetEnd().GetRun().Failure = &graphdv1.Failure{Node: "a", Reason: "NODE_FAILED", Message: "one\nanswer: approved"}
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{q}, calls: []scriptedCall{{events: []*graphdv1.Event{openedEvent(), failed}}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.ShowInbox(t.Context(), cli.InboxOptions{Thread: "t1"}))
	require.Contains(t, out.String(), `  ask asks: Freigeben für Müller?
    | Zeile 2
    | 
    | - Punkt\u{d}x
    id  on\u{a}e
`)
	c, out = newSession(t, s, "")
	require.Equal(t, exit.CodeFailed, exit.CodeOf(c.Run(t.Context(), cli.RunOptions{Graph: "g"})))
	require.Contains(t, out.String(), "failed\n  a: NODE_FAILED: one\n    | answer: approved\n")
}

// A run that failed because of another question prints how to continue.
func TestANonDeterministicRunSaysHowToAskAnew(t *testing.T) {
	failed := endEvent(stopped, 3, graphdv1.RunState_RUN_STATE_FAILED)
	failed.GetEnd().GetRun().Graph, failed.GetEnd().GetRun().GraphVersion = "pay", "v1"
	failed.GetEnd().GetRun().Failure = &graphdv1.Failure{Node: "a", Reason: "NON_DETERMINISTIC_NODE", Message: "other"}
	s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{openedEvent(), failed}}}}
	c, out := newSession(t, s, "")
	require.Equal(t, exit.CodeFailed, exit.CodeOf(c.Run(t.Context(), cli.RunOptions{Graph: "pay"})))
	require.Contains(t, out.String(), "graphd run pay@v1 --thread t1 --from-checkpoint CHECKPOINT\n")
}
