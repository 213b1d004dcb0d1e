package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

func newInterrupt() *graphdv1.Interrupt {
	return &graphdv1.Interrupt{
		InterruptId: "q1", ThreadId: "t1", Node: "review", Reason: "approval", Message: "Refund?", Seen: "digest",
		Value: newPayload(`{"amount": 9007199254740993}`),
		ResponseSchema: newPayload(`{"type": "object", "required": ["decision"], "properties": {
			"decision": {"enum": ["approved", "rejected"]}, "note": {"type": "string"}}}`),
	}
}

func TestATerminalIsAskedUntilTheAnswerFits(t *testing.T) {
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{newInterrupt()}, calls: []scriptedCall{
		{err: refusedError(codes.InvalidArgument, "RESPONSE_SCHEMA_MISMATCH")},
		{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, succeeded)}},
	}}
	c, out := newSession(t, s, "nonsense\n\n{\"decision\":\"approved\",\"note\":\"\"}\napproved\nlooks right\ny\n")
	c.IsTerminal = true
	require.NoError(t, c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1", Note: "by phone"}))
	require.Len(t, s.resumes, 2)
	first := s.resumes[0].GetResume().GetResponses()[0]
	require.JSONEq(t, `{"decision":"approved","note":""}`, first.GetValue().GetJson())
	require.Equal(t, "by phone", first.GetNote())
	require.Equal(t, "digest", first.GetSeen(), "the answer is for what was shown")
	last := s.resumes[1].GetResume().GetResponses()[0]
	require.Equal(t, "q1", last.GetInterruptId())
	require.JSONEq(t, `{"decision":"approved","note":"looks right"}`, last.GetValue().GetJson())
	for _, words := range []string{
		"review asks (approval): Refund?", "9007199254740993", "decision: approved | rejected, note?",
		"want one of: 1 approved, 2 rejected", "decision is required", "RESPONSE_SCHEMA_MISMATCH", "succeeded",
	} {
		require.Contains(t, out.String(), words)
	}
	require.Equal(t, 5, strings.Count(out.String(), "> "))
}

func TestAPersonWhoLeavesIsToldHowToComeBack(t *testing.T) {
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{newInterrupt()}}
	c, out := newSession(t, s, "")
	c.IsTerminal = true
	err := c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"})
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(err))
	require.Contains(t, out.String(), "waiting for a person; go on with\n  graphd resume t1\n", "the command asks: it needs no JSON")
	require.Empty(t, s.resumes)
}

// Of several questions a person answers the one that is named, and leaves those of others.
func TestATerminalIsAskedForOneQuestion(t *testing.T) {
	other := newInterrupt()
	other.InterruptId, other.Message = "q2", "Pay?"
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{newInterrupt(), other}, calls: []scriptedCall{
		{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, graphdv1.RunState_RUN_STATE_INTERRUPTED)}},
	}}
	c, out := newSession(t, s, "rejected\n:done\ny\n")
	c.IsTerminal = true
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1", Interrupt: "q2"})))
	require.NotContains(t, out.String(), "Refund?")
	answers := s.resumes[0].GetResume().GetResponses()
	require.Len(t, answers, 1)
	require.Equal(t, "q2", answers[0].GetInterruptId())

	c, out = newSession(t, s, "")
	c.IsTerminal = true
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1", Interrupt: "q2"})))
	require.Contains(t, out.String(), "\n  graphd resume t1 --interrupt q2\n")
	require.ErrorContains(t, c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1", Interrupt: "q3"}), "the server said no")
}

// On a narrow terminal the question and the prompts are broken at spaces.
func TestNarrowTerminalsBreakAtSpaces(t *testing.T) {
	q := newInterrupt()
	q.Message = "Refund the answer to order eighty-eight?"
	q.ResponseSchema = newPayload(`{"type":"object","required":["days"],"properties":{"days":{"type":"integer","minimum":1,"maximum":90,"default":30,
		"description":"In how many days the answer to the refund is paid"}}}`)
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{q}}
	c, out := newSession(t, s, ":quit\n")
	c.IsTerminal, c.Columns = true, 40
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"})))
	for _, lines := range []string{
		"  review asks (approval): Refund the\n  answer to order eighty-eight?\n",
		"  In how many days the answer to the\n  refund is paid\n", "  days (integer from 1 to 90) [30]> ",
	} {
		require.Contains(t, out.String(), lines)
	}
	c, out = newSession(t, s, ":quit\n")
	c.IsTerminal, c.Columns = true, 30
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"})))
	require.Contains(t, out.String(), "  days (integer from 1 to 90)\n  [30]> ")
}

// The answers to several questions are kept until the last one, and a person who leaves before
// is told so.
func TestAnswersToSeveralQuestionsAreSentTogether(t *testing.T) {
	s := &scriptedServer{calls: []scriptedCall{{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, succeeded)}}}}
	for _, id := range []string{"q1", "q2", "q3"} {
		q := newInterrupt()
		q.InterruptId = id
		s.interrupts = append(s.interrupts, q)
	}
	s.interrupts[1].ResponseSchema = newPayload(`{"type":"string"}`)
	c, out := newSession(t, s, "1\n:done\ny\nfine\ny\n:quit\n")
	c.IsTerminal = true
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"})))
	require.Empty(t, s.resumes)
	for _, words := range []string{
		"question 1 of 3\n", "question 3 of 3\n", "  keep it? [y/n] ", `  keep "fine"? [y/n] `,
		"nothing was sent: 2 answers were kept, and the questions of a thread are answered together; to answer one alone: graphd resume t1 --interrupt ID\n",
	} {
		require.Contains(t, out.String(), words)
	}

	c, out = newSession(t, s, "1\n:done\ny\nfine\ny\n1\n:done\ny\n")
	c.IsTerminal = true
	require.NoError(t, c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"}))
	require.Len(t, s.resumes[0].GetResume().GetResponses(), 3)
	require.Contains(t, out.String(), "  send all 3? [y/n] ")
	require.NotContains(t, out.String(), "nothing was sent")
}

// A person who has voted sees that the vote is stored, and what is missing.
func TestAVoteIsConfirmed(t *testing.T) {
	q := newInterrupt()
	q.People = &graphdv1.People{Groups: []string{"finance"}, Approvals: 2}
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{q}, calls: []scriptedCall{
		{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, graphdv1.RunState_RUN_STATE_INTERRUPTED)}},
	}}
	c, out := newSession(t, s, "")
	q.Votes = []*graphdv1.Vote{
		{Principal: "ana", Value: newPayload(`{"decision":"approved"}`), Agrees: true},
		{Principal: "ben\x1b", Value: newPayload(`{"decision":"approved","note":"hm"}`), Agrees: true},
	}
	require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1", Value: `{"decision":"approved"}`})))
	require.Contains(t, out.String(), "review: voted by ana, ben\\u{1b}, for different answers; 1 of 2 agree\nwaiting for a person; go on with\n  graphd resume t1\n")
}

func TestWithoutATerminalNobodyIsAsked(t *testing.T) {
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{newInterrupt()}, calls: []scriptedCall{{err: refusedError(codes.FailedPrecondition, "RESPONSES_INCOMPLETE")}}}
	c, _ := newSession(t, s, "approved\n")
	err := c.Resume(t.Context(), cli.ResumeOptions{Thread: "t1"})
	require.Equal(t, "RESPONSES_INCOMPLETE", report.Reason(err))
	require.Empty(t, s.resumes[0].GetResume().GetResponses())
}

func TestAnswersAreAddressed(t *testing.T) {
	s := &scriptedServer{calls: []scriptedCall{
		{events: []*graphdv1.Event{openedEvent(), endEvent(stopped, 2, succeeded)}},
	}}
	c, _ := newSession(t, s, "")
	require.NoError(t, c.Resume(t.Context(), cli.ResumeOptions{
		Thread: "t1", Answers: []string{"q1=null", `q2={"a":"b=c"}`}, Dismiss: []string{"q3=nobody knows", "q4"},
		Coverage: "all", Note: "hm",
	}))
	spec := s.resumes[0].GetResume()
	require.Equal(t, graphdv1.ResumeCoverage_RESUME_COVERAGE_ALL, spec.GetCoverage())
	require.Len(t, spec.GetResponses(), 4)
	require.Equal(t, "null", spec.GetResponses()[0].GetValue().GetJson())
	require.JSONEq(t, `{"a":"b=c"}`, spec.GetResponses()[1].GetValue().GetJson())
	require.Equal(t, "nobody knows", spec.GetResponses()[2].GetDismissal().GetReason())
	require.NotNil(t, spec.GetResponses()[3].GetDismissal())
	require.Equal(t, "hm", spec.GetResponses()[0].GetNote())
}
