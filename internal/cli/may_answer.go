package cli

import (
	"context"

	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

// dropRefused leaves out the questions that the caller may not answer: a form would be filled
// in without use. The error is the first refusal, when there is no other question.
func (s *Session) dropRefused(ctx context.Context, questions []*graphdv1.Interrupt) ([]*graphdv1.Interrupt, error) {
	var kept []*graphdv1.Interrupt
	var refusals []error
	for _, q := range questions {
		if err := s.findRefusal(ctx, q); err != nil {
			refusals = append(refusals, err)
		} else {
			kept = append(kept, q)
		}
	}
	if len(kept) == 0 && len(refusals) > 0 {
		return nil, refusals[0]
	}
	for _, err := range refusals {
		s.PrintNote("not asked: %s", status.Convert(err).Message())
	}
	return kept, nil
}

// findRefusal returns why the server would refuse every answer of the caller, nil when it may
// take one. It asks with a dismissal, which fits every schema.
func (s *Session) findRefusal(ctx context.Context, q *graphdv1.Interrupt) error {
	if q.GetReason() == "breakpoint" {
		return nil
	}
	_, err := s.Interrupts.CheckResponses(ctx, &graphdv1.CheckResponsesRequest{
		ThreadId: q.GetThreadId(), Responses: []*graphdv1.InterruptResponse{{
			InterruptId: q.GetInterruptId(),
			Outcome:     &graphdv1.InterruptResponse_Dismissal{Dismissal: &graphdv1.Dismissal{}},
		}},
	})
	switch report.Reason(err) {
	case "ACCESS_DENIED", "INTERRUPT_CLAIMED":
		return err
	}
	return nil // the answer itself meets any other error
}
