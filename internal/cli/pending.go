package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// showPending prints the answers that wait for their effect, when nothing else is asked. It reports
// whether there are such. Errors: those of the output.
func (s *Session) showPending(ctx context.Context, name QuestionName) (bool, error) {
	pending := s.listPending(ctx, name)
	if len(pending) == 0 {
		return false, nil
	}
	p := s.NewPrinter()
	for _, q := range pending {
		p.PrintLine("%s; take it back with %s", output.DescribePending(q), s.Invocation.CommandLine("inbox", "undo", q.GetThreadId()))
	}
	return true, p.WriteError()
}

// listPending lists the questions whose answers are not in effect yet. There are none while a question
// is open, or when the server does not tell.
func (s *Session) listPending(ctx context.Context, name QuestionName) []*graphdv1.Interrupt {
	answered, err := s.listQuestions(ctx, name.Thread, `state = "ANSWERED"`)
	if err != nil {
		return nil
	}
	now := time.Now()
	pending := slices.DeleteFunc(answered, func(q *graphdv1.Interrupt) bool {
		return !output.IsPending(q, now) || !strings.HasPrefix(q.GetInterruptId(), name.Interrupt)
	})
	if len(pending) == 0 || name.Interrupt != "" {
		return pending
	}
	if open, err := s.ListOpenInterrupts(ctx, name.Thread); err != nil || len(open) > 0 {
		return nil
	}
	return pending
}
