package cli

import (
	"context"
	"errors"
	"io"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// BulkOptions are the flags of `inbox answer`.
type BulkOptions struct {
	Filter    string // "" = all open questions
	Value     string // "" = none
	Dismiss   string // reason of a dismissal, "" = none
	Note      string
	Yes       bool // without a question at the terminal
	RequestID string
}

// maxBulkAnswers is the number of questions that one call answers.
const maxBulkAnswers = 10_000

// previewedQuestions is how many questions are shown before they are answered.
const previewedQuestions = 10

// AnswerQuestions gives one answer to all open questions that a filter selects, as they are
// shown before. It repeats the call while the server is away. Errors: *exit.UsageError,
// *exit.StatusError when questions were skipped, gRPC statuses, and those of the output.
func (s *Session) AnswerQuestions(ctx context.Context, o BulkOptions) error {
	req := &graphdv1.AnswerInterruptsRequest{Note: o.Note, RequestId: requestIDOrNew(o.RequestID)}
	switch {
	case (o.Value == "") == (o.Dismiss == ""):
		return exit.Usagef("give --value or --dismiss").WithHint(`%s`, s.Invocation.CommandLine("inbox", "answer", "--filter", `graph = "g"`, "--value", `"yes"`))
	case o.Dismiss != "":
		req.Outcome = &graphdv1.AnswerInterruptsRequest_Dismissal{Dismissal: &graphdv1.Dismissal{Reason: o.Dismiss}}
	default:
		value, err := argument.ReadValue(s.In, "--value", o.Value)
		if err != nil {
			return err
		}
		req.Outcome = &graphdv1.AnswerInterruptsRequest_Value{Value: value}
	}
	all, err := client.CollectPages(maxBulkAnswers+1, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
		resp, err := s.Interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: o.Filter, PageSize: size, PageToken: token})
		return resp.GetInterrupts(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	asked := form.WithoutBreakpoints(all)
	if len(asked) > maxBulkAnswers {
		return exit.Usagef("more than %d questions are selected; narrow --filter", maxBulkAnswers)
	}
	if err := s.confirmAnswers(ctx, asked, o); err != nil || len(asked) == 0 {
		return err
	}
	targets := &graphdv1.AnswerInterruptsRequest_Targets{}
	for _, q := range asked {
		targets.Targets = append(targets.Targets, &graphdv1.AnswerInterruptsRequest_Target{
			ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Seen: q.GetSeen(),
		})
	}
	req.Which = &graphdv1.AnswerInterruptsRequest_Targets_{Targets: targets}
	return s.sendAnswers(ctx, req)
}

// confirmAnswers shows what is about to be answered, and asks for a yes.
func (s *Session) confirmAnswers(ctx context.Context, asked []*graphdv1.Interrupt, o BulkOptions) error {
	if s.Format != output.Text {
		if !o.Yes && len(asked) > 0 {
			return exit.Usagef("%d questions are selected; give --yes to answer them", len(asked))
		}
		return nil
	}
	p := s.NewPrinter()
	if len(asked) == 0 {
		p.PrintLine("%s", p.Colorize(output.Dim, "no open questions"))
		return p.WriteError()
	}
	now := time.Now()
	for _, q := range asked[:min(len(asked), previewedQuestions)] {
		p.PrintLine("%s  %s  %s  %s", p.Colorize(output.Yellow, q.GetThreadId()), q.GetGraph(), output.FormatAge(q.GetCreateTime(), now)+" ago", q.GetMessage())
	}
	if n := len(asked) - previewedQuestions; n > 0 {
		p.PrintLine("and %d more", n)
	}
	if err := p.WriteError(); err != nil || o.Yes {
		return err
	}
	if !s.IsTerminal {
		return exit.Usagef("%d questions are selected; give --yes to answer them", len(asked))
	}
	yes, err := prompt.NewPrompter(p, s.In).Confirm(ctx, "give this answer to all of them?")
	if err != nil {
		return err
	}
	if !yes {
		return prompt.ErrNoAnswer
	}
	return nil
}

// sendAnswers makes the call until it has come to its end, and shows each question that was
// skipped.
func (s *Session) sendAnswers(ctx context.Context, req *graphdv1.AnswerInterruptsRequest) error {
	r := client.NewRetryTimer(stream.ReconnectTimeout)
	defer r.StopTimer()
	for {
		outcomes, err := s.readOutcomes(ctx, req)
		if err == nil {
			return s.showOutcomes(outcomes)
		}
		again, _ := client.IsRetryable(report.Reason(err))
		if !again && !report.IsUnreachable(err) || !r.WaitForAttempt(ctx) {
			return err
		}
		if s.Format == output.Text {
			s.PrintNote("%d answered so far; %s", countStored(outcomes), report.ExplainReconnect(err))
		}
	}
}

func (s *Session) readOutcomes(ctx context.Context, req *graphdv1.AnswerInterruptsRequest) (all []*graphdv1.AnswerOutcome, err error) {
	outcomes, err := s.Interrupts.AnswerInterrupts(ctx, req)
	if err != nil {
		return nil, err
	}
	for {
		outcome, err := outcomes.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, outcome)
	}
}

func countStored(outcomes []*graphdv1.AnswerOutcome) (n int) {
	for _, o := range outcomes {
		if o.GetStored() {
			n++
		}
	}
	return n
}

func (s *Session) showOutcomes(outcomes []*graphdv1.AnswerOutcome) error {
	stored := countStored(outcomes)
	p := s.NewPrinter()
	for _, o := range outcomes {
		switch {
		case s.Format != output.Text:
			if err := s.ShowMessage(o); err != nil {
				return err
			}
		case !o.GetStored():
			p.PrintLine("%s  skipped  %s: %s", p.Colorize(output.Yellow, o.GetThreadId()), o.GetReason(), o.GetMessage())
		}
	}
	if s.Format == output.Text {
		p.PrintLine("%d answered, %d skipped", stored, len(outcomes)-stored)
		if err := p.WriteError(); err != nil {
			return err
		}
	}
	if stored < len(outcomes) {
		return &exit.StatusError{Code: exit.CodeError}
	}
	return nil
}
