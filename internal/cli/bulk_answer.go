package cli

import (
	"context"
	"errors"
	"io"
	"slices"
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

// maxBulkAnswers is the number of questions that one command answers, and answersPerCall
// that of one call: what is done is shown after each.
const (
	maxBulkAnswers = 10_000
	answersPerCall = 500
)

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
	selected, err := s.selectAnswers(ctx, o.Filter, req.GetValue().GetJson())
	if err != nil {
		return err
	}
	if err := s.confirmAnswers(ctx, selected, o); err != nil || len(selected.targets) == 0 {
		return err
	}
	return s.sendAnswers(ctx, req, selected.targets)
}

// bulkSelection is the open questions that a filter selects.
type bulkSelection struct {
	targets []*graphdv1.AnswerInterruptsRequest_Target
	preview []*graphdv1.Interrupt // the first ones, to show
	misfits int                   // questions whose schemas refuse the value
}

// selectAnswers lists the open questions that a filter selects. value is the answer, "" for a
// dismissal.
func (s *Session) selectAnswers(ctx context.Context, filter, value string) (*bulkSelection, error) {
	selected, schemas := &bulkSelection{}, prompt.NewSchemas()
	_, err := client.CollectPages(0, func(token string, size int32) ([]struct{}, string, error) {
		resp, err := s.Interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{Filter: filter, PageSize: size, PageToken: token})
		if err != nil {
			return nil, "", err
		}
		for _, q := range form.WithoutBreakpoints(resp.GetInterrupts()) {
			selected.targets = append(selected.targets, &graphdv1.AnswerInterruptsRequest_Target{
				ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Seen: q.GetSeen(),
			})
			if len(selected.preview) < previewedQuestions {
				selected.preview = append(selected.preview, q)
			}
			if schemas.IsMisfit(ctx, q, value) {
				selected.misfits++
			}
		}
		if len(selected.targets) > maxBulkAnswers {
			return nil, "", exit.Usagef("more than %d questions are selected; narrow --filter", maxBulkAnswers)
		}
		return nil, resp.GetNextPageToken(), nil
	})
	return selected, err
}

// confirmAnswers shows what is about to be answered, and asks for a yes.
func (s *Session) confirmAnswers(ctx context.Context, selected *bulkSelection, o BulkOptions) error {
	count := len(selected.targets)
	if s.Format != output.Text {
		if !o.Yes && count > 0 {
			return exit.Usagef("%d questions are selected; give --yes to answer them", count)
		}
		return nil
	}
	if count == 0 {
		return s.printNoQuestions("no open questions")
	}
	p := s.NewPrinter()
	now := time.Now()
	for _, q := range selected.preview {
		p.PrintLine("%s  %s  %s  %s", p.Colorize(output.Yellow, q.GetThreadId()), q.GetGraph(), output.FormatAge(q.GetCreateTime(), now)+" ago", output.TitleOf(q))
	}
	if n := count - len(selected.preview); n > 0 {
		p.PrintLine("and %d more", n)
	}
	p.PrintLine("%d question%s", count, plural(count))
	if n := selected.misfits; n > 0 {
		p.PrintLine("the answer does not fit %d of them", n)
	}
	if err := p.WriteError(); err != nil || o.Yes {
		return err
	}
	if !s.IsTerminal {
		return exit.Usagef("%d questions are selected; give --yes to answer them", count)
	}
	yes, err := prompt.NewPrompter(p, s.IO).Confirm(ctx, "give this answer to all of them?")
	if err != nil {
		return err
	}
	if !yes {
		return prompt.ErrNoAnswer
	}
	return nil
}

// sendAnswers answers the targets, some with each call, and shows each question that was
// skipped.
func (s *Session) sendAnswers(ctx context.Context, req *graphdv1.AnswerInterruptsRequest, targets []*graphdv1.AnswerInterruptsRequest_Target) error {
	stored, skipped := 0, 0
	for some := range slices.Chunk(targets, answersPerCall) {
		outcomes, err := s.answerSome(ctx, req, some)
		stored, skipped = stored+countStored(outcomes), skipped+len(outcomes)-countStored(outcomes)
		if shown := s.showOutcomes(outcomes); shown != nil {
			return shown
		}
		if err != nil {
			s.PrintNote("%d answered, %d skipped so far; to go on, repeat the command with --request-id %s", stored, skipped, req.GetRequestId())
			return err
		}
	}
	if s.Format == output.Text {
		p := s.NewPrinter()
		p.PrintLine("%d answered, %d skipped", stored, skipped)
		if err := p.WriteError(); err != nil {
			return err
		}
	}
	if skipped > 0 {
		return &exit.StatusError{Code: exit.CodeError}
	}
	return nil
}

// answerSome makes a call until each target has its outcome: after a break it names those
// that have none. It returns the outcomes also with an error.
func (s *Session) answerSome(
	ctx context.Context, req *graphdv1.AnswerInterruptsRequest, targets []*graphdv1.AnswerInterruptsRequest_Target,
) (all []*graphdv1.AnswerOutcome, err error) {
	r := client.NewRetryTimer(stream.ReconnectTimeout)
	defer r.StopTimer()
	for {
		req.Which = &graphdv1.AnswerInterruptsRequest_Targets_{Targets: &graphdv1.AnswerInterruptsRequest_Targets{Targets: targets}}
		outcomes, err := s.readOutcomes(ctx, req)
		all = append(all, outcomes...)
		if targets = withoutOutcome(targets, outcomes); err == nil || len(targets) == 0 {
			return all, nil
		}
		if len(outcomes) > 0 {
			r.ResetDelay()
		}
		again, _ := client.IsRetryable(report.Reason(err))
		if !again && !report.IsUnreachable(err) || !r.WaitForAttempt(ctx) {
			return all, err
		}
		if s.Format == output.Text {
			s.PrintNote("%s", report.ExplainReconnect(err))
		}
	}
}

// withoutOutcome returns the targets that have no outcome.
func withoutOutcome(
	targets []*graphdv1.AnswerInterruptsRequest_Target, outcomes []*graphdv1.AnswerOutcome,
) []*graphdv1.AnswerInterruptsRequest_Target {
	type name struct{ thread, interrupt string }
	known := make(map[name]bool, len(outcomes))
	for _, o := range outcomes {
		known[name{o.GetThreadId(), o.GetInterruptId()}] = true
	}
	return slices.DeleteFunc(slices.Clone(targets), func(t *graphdv1.AnswerInterruptsRequest_Target) bool {
		return known[name{t.GetThreadId(), t.GetInterruptId()}]
	})
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
	return p.WriteError()
}
