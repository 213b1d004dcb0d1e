package cli_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
)

// AnswerInterrupts answers the first target of a call, and breaks off until none is left.
func (s *scriptedServer) AnswerInterrupts(r *graphdv1.AnswerInterruptsRequest, w grpc.ServerStreamingServer[graphdv1.AnswerOutcome]) error {
	s.answers = append(s.answers, r)
	targets := r.GetTargets().GetTargets()
	outcome := &graphdv1.AnswerOutcome{ThreadId: targets[0].GetThreadId(), InterruptId: targets[0].GetInterruptId(), Stored: true}
	if err := w.Send(outcome); err != nil {
		return err
	}
	if len(targets) > 1 {
		return refusedError(codes.Unavailable, "STORE_UNAVAILABLE")
	}
	return nil
}

// The questions are shown as in the table of the inbox.
func TestABulkAnswerShowsFirstLines(t *testing.T) {
	s := &scriptedServer{interrupts: []*graphdv1.Interrupt{{InterruptId: "q1", ThreadId: "t1", Message: "# Pay?\n\nAt once."}}}
	c, out := newSession(t, s, "")
	require.NoError(t, c.AnswerQuestions(t.Context(), cli.BulkOptions{Value: "true", Yes: true}))
	require.Contains(t, out.String(), " ago  Pay?\n1 question\n")
	require.NotContains(t, out.String(), "At once")
	require.NotContains(t, out.String(), "does not fit")
}

// After a break only the questions without an outcome are sent again, with the same id.
func TestABrokenBulkAnswerGoesOnWhereItStopped(t *testing.T) {
	s := &scriptedServer{}
	for _, id := range []string{"q1", "q2", "q3"} {
		s.interrupts = append(s.interrupts, &graphdv1.Interrupt{InterruptId: id, ThreadId: "t1"})
	}
	c, out := newSession(t, s, "")
	require.NoError(t, c.AnswerQuestions(t.Context(), cli.BulkOptions{Value: "true", Yes: true}))
	require.Contains(t, out.String(), "3 answered, 0 skipped\n")
	var sent [][]string
	for _, r := range s.answers {
		require.Equal(t, s.answers[0].GetRequestId(), r.GetRequestId())
		var ids []string
		for _, target := range r.GetTargets().GetTargets() {
			ids = append(ids, target.GetInterruptId())
		}
		sent = append(sent, slices.Clip(ids))
	}
	require.Equal(t, [][]string{{"q1", "q2", "q3"}, {"q2", "q3"}, {"q3"}}, sent)
}
