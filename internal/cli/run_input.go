package cli

import (
	"context"
	"errors"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
)

// askInput asks at the terminal for the input of a graph, NAME or NAME@VERSION, by the fields
// of its schema. Errors: *exit.UsageError without a terminal, *exit.StatusError when the person
// leaves, gRPC statuses, and those of the output.
func (s *Session) askInput(ctx context.Context, graph string) (*graphdv1.RunSpec_Input, error) {
	if !s.IsTerminal || s.Format != output.Text {
		return nil, exit.Usagef("--ask asks at a terminal, and here is none").WithHint("give the input with --input JSON")
	}
	g, err := s.FetchGraph(ctx, graph)
	if err != nil {
		return nil, err
	}
	ask := prompt.NewPrompter(s.NewPrinter(), s.IO)
	if g.GetDescription() != "" {
		ask.PrintLine("  %s", g.GetDescription())
	}
	text, err := ask.ReadAnswer(ctx, form.ParseSchema(g.GetInputSchema().GetJson()))
	if errors.Is(err, prompt.ErrNoAnswer) {
		s.PrintNote("no run was started")
		return nil, &exit.StatusError{Code: exit.CodeError}
	}
	return &graphdv1.RunSpec_Input{Input: argument.NewPayload(text)}, err
}
