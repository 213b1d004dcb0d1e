package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// ResumeOptions are the flags of `resume`.
type ResumeOptions struct {
	Thread    string
	Interrupt string   // the question that Value answers; "" = the open question
	Value     string   // "" = none
	Answers   []string // ID=JSON
	Dismiss   []string // ID or ID=REASON
	Note      string
	Coverage  string
	Update    string
	Metadata  []string
	Events    []string
	Detach    bool
	RequestID string
}

// Resume answers questions and shows the run that continues. Without an answer it
// asks at a terminal. Errors: *exit.UsageError, gRPC statuses, and those of
// Viewer.ShowRun.
func (s *Session) Resume(ctx context.Context, o ResumeOptions) error {
	asked := QuestionName{Thread: o.Thread, Interrupt: o.Interrupt}
	isAsking := o.hasNoAnswer() && s.IsTerminal && s.Format == output.Text
	if isAsking {
		o.Interrupt = ""
	}
	if o.hasNoAnswer() && o.Update == "" && !o.Detach && s.Format == output.Text {
		if isShown, err := s.showPending(ctx, asked); isShown || err != nil {
			return err
		}
	}
	spec, err := buildResumeSpec(s.In, o)
	if err != nil {
		return err
	}
	if err := s.completeIDs(ctx, spec); err != nil {
		return err
	}
	chosen, err := stream.NewSelection(o.Events, s.Format)
	if err != nil {
		return err
	}
	if isAsking {
		return s.askAndResume(ctx, spec, chosen, o, asked)
	}
	return s.resumeRun(ctx, spec, chosen, o)
}

// interruptIDLength is the length of a question's id.
const interruptIDLength = 32

// completeIDs completes shortened ids, because the server takes only whole ids.
func (s *Session) completeIDs(ctx context.Context, spec *graphdv1.ResumeSpec) error {
	if !slices.ContainsFunc(spec.GetResponses(), func(r *graphdv1.InterruptResponse) bool {
		return len(r.GetInterruptId()) < interruptIDLength
	}) {
		return nil
	}
	questions, err := s.ListOpenInterrupts(ctx, spec.GetThreadId())
	if err != nil {
		return err
	}
	for _, r := range spec.GetResponses() {
		var found []string
		for _, q := range questions {
			if strings.HasPrefix(q.GetInterruptId(), r.GetInterruptId()) {
				found = append(found, q.GetInterruptId())
			}
		}
		switch {
		case len(found) == 1:
			r.InterruptId = found[0]
		case len(found) > 1:
			return exit.Usagef("%s begins the ids of several open questions", r.GetInterruptId()).
				WithHint("give more of one of them: %s", strings.Join(found, ", "))
		}
	}
	return nil
}

func (o *ResumeOptions) hasNoAnswer() bool {
	return o.Value == "" && len(o.Answers) == 0 && len(o.Dismiss) == 0
}

func (s *Session) resumeRun(
	ctx context.Context, spec *graphdv1.ResumeSpec, chosen stream.Selection, o ResumeOptions,
) error {
	id := requestIDOrNew(o.RequestID)
	if o.Detach {
		run, err := s.Graphs.ResumeRun(ctx, &graphdv1.ResumeRunRequest{Resume: spec, RequestId: id})
		if err != nil {
			return err
		}
		return s.showDetached(run)
	}
	req := &graphdv1.ResumeRequest{Resume: spec, Filter: chosen.Filter, RequestId: id}
	return s.newViewer().ShowRun(ctx, chosen, func(ctx context.Context) (stream.EventStream, error) {
		return s.Graphs.Resume(ctx, req)
	})
}

// buildResumeSpec makes the request that the options describe. The error is an
// *exit.UsageError for options that do not go together.
func buildResumeSpec(in io.Reader, o ResumeOptions) (*graphdv1.ResumeSpec, error) {
	spec := &graphdv1.ResumeSpec{ThreadId: o.Thread}
	var err error
	if spec.Responses, err = parseResponses(in, o); err != nil {
		return nil, err
	}
	switch {
	case o.Value == "" && o.Interrupt != "":
		return nil, exit.Usagef("--interrupt says which question --value answers").
			WithHint("add --value JSON, or use --dismiss %s", o.Interrupt)
	case o.Value != "" && o.Interrupt == "" && len(spec.Responses) > 0:
		return nil, exit.Usagef("--value without --interrupt is for the only question").
			WithHint("answer several by id: --answer ID=JSON")
	case o.Value != "":
		value, err := argument.ReadValue(in, "--value", o.Value)
		if err != nil {
			return nil, err
		}
		r := &graphdv1.InterruptResponse{
			InterruptId: o.Interrupt, Outcome: &graphdv1.InterruptResponse_Value{Value: value}, Note: o.Note,
		}
		if o.Interrupt == "" {
			spec.Single = r
		} else {
			spec.Responses = append(spec.Responses, r)
		}
	}
	if o.Update != "" {
		if spec.Update, err = argument.ReadValue(in, "--update", o.Update); err != nil {
			return nil, err
		}
	}
	if spec.Metadata, err = argument.ParseLabels("--metadata", o.Metadata); err != nil {
		return nil, err
	}
	spec.Coverage, err = argument.ParseCoverage(o.Coverage)
	return spec, err
}

func parseResponses(in io.Reader, o ResumeOptions) ([]*graphdv1.InterruptResponse, error) {
	var all []*graphdv1.InterruptResponse
	for _, answer := range o.Answers {
		id, text, ok := strings.Cut(answer, "=")
		if !ok || id == "" {
			return nil, exit.Usagef("--answer %q: want ID=JSON", answer).
				WithHint("the only open question takes --value JSON")
		}
		value, err := argument.ReadValue(in, "--answer "+id+"=", text)
		if err != nil {
			return nil, err
		}
		all = append(all, &graphdv1.InterruptResponse{
			InterruptId: id, Outcome: &graphdv1.InterruptResponse_Value{Value: value}, Note: o.Note,
		})
	}
	for _, dismissal := range o.Dismiss {
		id, reason, _ := strings.Cut(dismissal, "=")
		if id == "" {
			return nil, exit.Usagef("--dismiss %q: want ID or ID=REASON", dismissal)
		}
		all = append(all, &graphdv1.InterruptResponse{
			InterruptId: id, Note: o.Note, Outcome: &graphdv1.InterruptResponse_Dismissal{
				Dismissal: &graphdv1.Dismissal{Reason: reason},
			},
		})
	}
	return all, nil
}

// askAndResume asks for every open question in turn, or for the one that is named. It asks
// again when the server refuses an answer because of its schema.
func (s *Session) askAndResume(
	ctx context.Context, spec *graphdv1.ResumeSpec, chosen stream.Selection, o ResumeOptions, name QuestionName,
) error {
	questions, err := s.listAsked(ctx, name)
	if err != nil {
		return err
	}
	if questions, err = s.dropRefused(ctx, questions); err != nil {
		return err
	}
	ask := prompt.NewPrompter(s.NewPrinter(), s.IO)
	ask.RecordReplaced(s.FetchReplaced(ctx, questions)...)
	for {
		spec.Responses = nil
		asked := form.WithoutBreakpoints(questions)
		for i, q := range asked {
			text, err := ask.AskOneOf(ctx, q, i+1, len(asked))
			if err != nil {
				return s.endUnanswered(err, name, i)
			}
			spec.Responses = append(spec.Responses, &graphdv1.InterruptResponse{
				InterruptId: q.GetInterruptId(), Note: o.Note, Seen: q.GetSeen(),
				Outcome: &graphdv1.InterruptResponse_Value{Value: argument.NewPayload(text)},
			})
		}
		err := s.resumeRun(ctx, spec, chosen, o)
		if report.Reason(err) != "RESPONSE_SCHEMA_MISMATCH" || len(spec.GetResponses()) == 0 {
			return err
		}
		report.NewStatusReport(err).PrintReport(s.Out)
	}
}

// listAsked lists the open questions of a thread, or the one of them that is named.
func (s *Session) listAsked(ctx context.Context, name QuestionName) ([]*graphdv1.Interrupt, error) {
	if name.Interrupt == "" {
		return s.ListOpenInterrupts(ctx, name.Thread)
	}
	q, err := s.findQuestion(ctx, name, false)
	return []*graphdv1.Interrupt{q}, err
}

// endUnanswered ends a command whose questions are still open, though some answers were kept.
func (s *Session) endUnanswered(err error, name QuestionName, kept int) error {
	if !errors.Is(err, prompt.ErrNoAnswer) {
		return err
	}
	if kept > 0 {
		s.PrintNote("nothing was sent: %s kept, and the questions of a thread are answered together; to answer one alone: %s",
			countAnswers(kept), s.Invocation.CommandLine("resume", name.Thread, "--interrupt", "ID"))
	}
	if err := s.newViewer().PrintResumeCommand(name.resumeArgs()); err != nil {
		return err
	}
	return &exit.StatusError{Code: exit.CodeWaiting}
}

func countAnswers(n int) string {
	if n == 1 {
		return "1 answer was"
	}
	return strconv.Itoa(n) + " answers were"
}
