package cli

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/cli/output"
)

// LinkOptions say who answers by a link, and until when.
type LinkOptions struct {
	Principal string // "" = the caller
	Groups    []string
	Valid     string // a duration, "" = the default of the server
	IsBound   bool
	Preset    string // JSON, "" = none
}

// MakeLink prints a link to a question: its URL on standard output alone. Errors: *exit.UsageError,
// those of findQuestion, gRPC statuses, and those of the output.
func (s *Session) MakeLink(ctx context.Context, name QuestionName, wanted LinkOptions) error {
	req := &graphdv1.MakeLinkRequest{Principal: wanted.Principal, Groups: wanted.Groups, Bound: wanted.IsBound}
	if wanted.Valid != "" {
		valid, err := argument.ParseDays("valid", wanted.Valid)
		if err != nil {
			return err
		}
		req.Valid = durationpb.New(valid)
	}
	if wanted.Preset != "" {
		if err := jsontext.CheckValue(wanted.Preset); err != nil {
			return exit.Usagef("--preset: %v", err).WithHint(`want JSON, like '{"decision": "approved"}'`)
		}
		req.Preset = &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: wanted.Preset}}
	}
	req.ThreadId, req.InterruptId = name.Thread, name.Interrupt
	if len(name.Interrupt) < interruptIDLength { // who only makes links may not look for questions
		q, err := s.findQuestion(ctx, name, false)
		if err != nil {
			return err
		}
		req.ThreadId, req.InterruptId = q.GetThreadId(), q.GetInterruptId()
	}
	made, err := s.Interrupts.MakeLink(ctx, req)
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(made)
	}
	p := s.NewPrinter()
	p.PrintLine("%s", made.GetUrl())
	return p.WriteError()
}
