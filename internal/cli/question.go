package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

// QuestionName names a question of a thread.
type QuestionName struct {
	Thread    string
	Interrupt string // its id, or the beginning of it; "" = the only open one
}

// resumeArgs returns the arguments of the command that asks at a terminal for the answer.
func (n QuestionName) resumeArgs() []string {
	args := []string{"resume", n.Thread}
	if n.Interrupt != "" {
		args = append(args, "--interrupt", n.Interrupt)
	}
	return args
}

// answerCommand returns the command that asks for the answer to a question. It never proposes
// an answer.
func (s *Session) answerCommand(name QuestionName) string {
	return s.Invocation.CommandLine(name.resumeArgs()...)
}

// findQuestion finds the question that is named. Without a name it is the only open one of
// the thread, or, where closed ones will do, the last one that was asked.
func (s *Session) findQuestion(ctx context.Context, name QuestionName, closedToo bool) (*graphdv1.Interrupt, error) {
	if name.Interrupt != "" {
		return s.findQuestionByID(ctx, name, closedToo)
	}
	open, err := s.listQuestions(ctx, name.Thread, "")
	if err != nil {
		return nil, err
	}
	if len(open) == 0 {
		if _, err := s.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: name.Thread}); err != nil {
			return nil, err // there is no such thread
		}
	}
	if len(open) == 0 && closedToo {
		if open, err = s.listQuestions(ctx, name.Thread, `state = "*"`); err != nil {
			return nil, err
		}
		open = form.WithoutBreakpoints(open)
		open = open[max(0, len(open)-1):]
	}
	switch asked := form.WithoutBreakpoints(open); len(asked) {
	case 1:
		return asked[0], nil
	case 0:
		return nil, s.explainNoQuestion(ctx, name.Thread)
	default:
		return nil, exit.Usagef("thread %q has %d open questions: %s", name.Thread, len(asked), strings.Join(listIDs(asked), ", ")).
			WithHint("name one with --interrupt ID")
	}
}

// explainNoQuestion says that a thread has no open question, and what became of the last one.
func (s *Session) explainNoQuestion(ctx context.Context, thread string) error {
	all, err := s.listQuestions(ctx, thread, `state = "*"`)
	all = form.WithoutBreakpoints(all)
	if err != nil || len(all) == 0 {
		return exit.Usagef("thread %q has no open question", thread).WithHint("%s", s.Invocation.CommandLine("inbox"))
	}
	return exit.Usagef("the question of thread %q is %s", thread, describeClosed(all[len(all)-1])).
		WithHint("%s", s.Invocation.CommandLine("inbox", "show", thread))
}

// describeClosed says how a question was decided: "answered already, by ben".
func describeClosed(q *graphdv1.Interrupt) string {
	what := output.InterruptStateName(q)
	if what == "consumed" {
		what = "answered"
	}
	what += " already"
	if q.GetResponder() != "" {
		what += ", by " + q.GetResponder()
	}
	return what
}

// findQuestionByID finds a question by its id, or by the beginning of it.
func (s *Session) findQuestionByID(ctx context.Context, name QuestionName, closedToo bool) (*graphdv1.Interrupt, error) {
	q, err := s.Interrupts.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{ThreadId: name.Thread, InterruptId: name.Interrupt})
	if err == nil || len(name.Interrupt) >= interruptIDLength || report.Reason(err) != "INTERRUPT_NOT_FOUND" {
		return q, err
	}
	filter := ""
	if closedToo {
		filter = `state = "*"`
	}
	all, listErr := s.listQuestions(ctx, name.Thread, filter)
	if listErr != nil {
		return nil, err
	}
	found := slices.DeleteFunc(all, func(q *graphdv1.Interrupt) bool { return !strings.HasPrefix(q.GetInterruptId(), name.Interrupt) })
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	}
	return nil, exit.Usagef("--interrupt %s begins the ids of several questions", name.Interrupt).
		WithHint("give more of one of them: %s", strings.Join(listIDs(found), ", "))
}

// listIDs lists ids for a message, which may have several lines: an id is on one.
func listIDs(questions []*graphdv1.Interrupt) []string {
	ids := make([]string, len(questions))
	for i, q := range questions {
		ids[i] = string(output.MakeSafe(q.GetInterruptId()))
	}
	return ids
}

func (s *Session) listQuestions(ctx context.Context, thread, filter string) ([]*graphdv1.Interrupt, error) {
	return client.CollectPages(0, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
		resp, err := s.Interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread, Filter: filter, PageSize: size, PageToken: token})
		return resp.GetInterrupts(), resp.GetNextPageToken(), err
	})
}

// TakeQuestion claims a question for the caller. Errors: those of findQuestion, gRPC
// statuses, and those of the output.
func (s *Session) TakeQuestion(ctx context.Context, name QuestionName, duration time.Duration) error {
	q, err := s.findQuestion(ctx, name, false)
	if err != nil {
		return err
	}
	req := &graphdv1.ClaimInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId()}
	if duration != 0 {
		req.Duration = durationpb.New(duration)
	}
	claimed, err := s.Interrupts.ClaimInterrupt(ctx, req)
	if err != nil {
		return err
	}
	return s.showChanged(claimed, "yours until "+output.FormatTime(claimed.GetClaimExpireTime()))
}

// GiveQuestion gives up the caller's claim on a question, or with force that of its
// holder. Errors: those of findQuestion, gRPC statuses, and those of the output.
func (s *Session) GiveQuestion(ctx context.Context, name QuestionName, note string, force bool) error {
	if force {
		return s.updateQuestion(ctx, name, "claimed_by", func(*graphdv1.Interrupt) {}, func(*graphdv1.Interrupt) string { return "not claimed" })
	}
	q, err := s.findQuestion(ctx, name, false)
	if err != nil {
		return err
	}
	given, err := s.Interrupts.ReleaseInterrupt(ctx, &graphdv1.ReleaseInterruptRequest{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Note: note})
	if err != nil {
		return err
	}
	return s.showChanged(given, "not claimed")
}

// DelegateQuestion hands the caller's part in a question to another user. Errors: those of
// findQuestion, gRPC statuses, and those of the output.
func (s *Session) DelegateQuestion(ctx context.Context, name QuestionName, to, note string) error {
	q, err := s.findQuestion(ctx, name, false)
	if err != nil {
		return err
	}
	handed, err := s.Interrupts.DelegateInterrupt(ctx, &graphdv1.DelegateInterruptRequest{
		ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), To: to, Note: note,
	})
	if err != nil {
		return err
	}
	return s.showChanged(handed, describeHandedOver(handed, to))
}

// describeHandedOver says what a person may do whom a question was handed to.
func describeHandedOver(q *graphdv1.Interrupt, to string) string {
	for _, d := range q.GetDelegations() {
		if d.GetTo() == to {
			return to + " answers in the place of " + d.GetFrom()
		}
	}
	what := "assigned to " + to
	people := q.GetPeople()
	switch audience := output.DescribeAudience(people); {
	case people.GetDelegable():
		return what // a place that was taken back
	case audience == "" || slices.Contains(people.GetUsers(), to):
		return what + "; the question takes no delegates: you may still answer"
	default:
		return what + "; the question takes no delegates: " + to + " may answer only as one of these (" + audience + "), and you may still answer"
	}
}

// CommentQuestion adds a comment to a question. Errors: those of findQuestion, gRPC
// statuses, and those of the output.
func (s *Session) CommentQuestion(ctx context.Context, name QuestionName, text, requestID string) error {
	q, err := s.findQuestion(ctx, name, false)
	if err != nil {
		return err
	}
	added, err := s.Interrupts.CommentInterrupt(ctx, &graphdv1.CommentInterruptRequest{
		ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Text: text, RequestId: requestID,
	})
	if err != nil {
		return err
	}
	if s.Format != output.Text {
		return s.ShowMessage(added)
	}
	p := s.NewPrinter()
	p.PrintTrailEntry(added)
	return p.WriteError()
}

// AssignQuestion changes who should answer a question. Errors: those of findQuestion, gRPC
// statuses, and those of the output.
func (s *Session) AssignQuestion(ctx context.Context, name QuestionName, people []string) error {
	return s.updateQuestion(ctx, name, "assignees", func(q *graphdv1.Interrupt) { q.Assignees = people }, func(q *graphdv1.Interrupt) string {
		if len(q.GetAssignees()) == 0 {
			return "not assigned"
		}
		return "assigned to " + strings.Join(q.GetAssignees(), ", ")
	})
}

// ExtendQuestion changes when a question expires: so long from now, 0 = never. Errors: those
// of findQuestion, gRPC statuses, and those of the output.
func (s *Session) ExtendQuestion(ctx context.Context, name QuestionName, by time.Duration) error {
	return s.updateQuestion(ctx, name, "expire_time", func(q *graphdv1.Interrupt) {
		if by > 0 {
			q.ExpireTime = timestamppb.New(time.Now().Add(by))
		}
	}, func(q *graphdv1.Interrupt) string {
		if q.GetExpireTime() == nil {
			return "never expires"
		}
		return "expires " + output.FormatTime(q.GetExpireTime())
	})
}

func (s *Session) updateQuestion(
	ctx context.Context, name QuestionName, path string, set func(*graphdv1.Interrupt), describe func(*graphdv1.Interrupt) string,
) error {
	q, err := s.findQuestion(ctx, name, false)
	if err != nil {
		return err
	}
	change := &graphdv1.Interrupt{ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), Etag: q.GetEtag()}
	set(change)
	changed, err := s.Interrupts.UpdateInterrupt(ctx, &graphdv1.UpdateInterruptRequest{
		Interrupt: change, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{path}},
	})
	if err != nil {
		return err
	}
	return s.showChanged(changed, describe(changed))
}

// showChanged shows a question after a change, which is described in words.
func (s *Session) showChanged(q *graphdv1.Interrupt, what string) error {
	if s.Format != output.Text {
		return s.ShowMessage(q)
	}
	p := s.NewPrinter()
	p.PrintLine("question %s of %s: %s", q.GetInterruptId(), q.GetThreadId(), what)
	return p.WriteError()
}
