package cli

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// RevealQuestion shows the secret parts of a question, and records that the caller has seen
// them. Errors: those of findQuestion, gRPC statuses, and those of the output.
func (s *Session) RevealQuestion(ctx context.Context, name QuestionName, pointers []string, note string) error {
	q, err := s.findQuestion(ctx, name, true)
	if err != nil {
		return err
	}
	revealed, err := s.Interrupts.RevealInterrupt(ctx, &graphdv1.RevealInterruptRequest{
		ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Pointers: pointers, Note: note,
	})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(revealed)
	}
	p := s.NewPrinter()
	p.PrintRevealed(revealed)
	return p.WriteError()
}
