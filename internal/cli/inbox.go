package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

// InboxOptions are the flags of `inbox`.
type InboxOptions struct {
	argument.Questions

	Thread string // "" = all threads
	Filter string
	Limit  int // 0 = all
	Watch  bool
}

// ShowInbox lists the open questions in a table, or those of a thread in full, or follows
// them. Errors: *exit.UsageError, gRPC statuses, and those of the output.
func (s *Session) ShowInbox(ctx context.Context, o InboxOptions) error {
	if err := o.CheckScope(o.Thread, o.Filter, o.Watch); err != nil {
		return err
	}
	query, err := o.ParseQuery(time.Now())
	if err != nil {
		return err
	}
	filter := argument.JoinConditions(o.Filter, query.Conditions...)
	if o.Watch {
		return s.watchInterrupts(ctx, o.Thread, filter)
	}
	all, more, err := s.listInbox(ctx, o, filter, query.OrderBy)
	if err != nil {
		return err
	}
	switch {
	case s.Format != output.Text:
		return output.ShowList(&s.Output, &graphdv1.ListInterruptsResponse{Interrupts: all}, all)
	case len(all) == 0:
		return s.printNoQuestions("no open questions" + noteDue(o))
	case o.Thread != "":
		return s.printInterrupts(ctx, all)
	}
	p := s.NewPrinter()
	p.PrintQuestionTable(all, time.Now(), s.Columns)
	if err := p.WriteError(); err != nil {
		return err
	}
	s.PrintNote("%s%s", s.describeCount(ctx, len(all), more, o.Filter, query), noteDue(o))
	return nil
}

// noteDue says which questions --sort due leaves out, "" when it is not given. --due leaves
// them out too.
func noteDue(o InboxOptions) string {
	switch {
	case o.Sort != argument.SortDue:
		return ""
	case o.Due != "":
		return " with a due time"
	}
	return " with a due time; others are listed without --sort due"
}

// listInbox lists the questions of a filter, and reports whether there may be more than the
// options ask for.
func (s *Session) listInbox(ctx context.Context, o InboxOptions, filter, orderBy string) ([]*graphdv1.Interrupt, bool, error) {
	all, more, err := client.CollectSome(o.Limit, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
		resp, err := s.Interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{
			ThreadId: o.Thread, Filter: filter, OrderBy: orderBy, PageSize: size, PageToken: token,
		})
		return resp.GetInterrupts(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return nil, false, explainMine(err, o)
	}
	if len(all) == 0 {
		err = s.checkNames(ctx, o)
	}
	return all, more, err
}

// explainMine makes the refusal of a server that can't tell whose questions are meant one of
// the command line.
func explainMine(err error, o InboxOptions) error {
	if o.Mine && report.Reason(err) == "INVALID_FIELD" && strings.Contains(err.Error(), "mine needs") {
		return exit.Usagef("--mine needs a server that knows its callers").
			WithHint(`name a group with --group, or a user with --filter 'assignee = "NAME"'`)
	}
	return err
}

// checkNames finds out whether nothing was found because a thread or a graph has no such
// name.
func (s *Session) checkNames(ctx context.Context, o InboxOptions) error {
	if o.Thread != "" {
		if _, err := s.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: o.Thread}); err != nil {
			return err // there is no such thread
		}
	}
	if o.Graph == "" {
		return nil
	}
	names, err := s.ListGraphNames(ctx)
	if err != nil || slices.Contains(names, o.Graph) {
		return nil //nolint:nilerr // who may not see the graphs sees that there are no questions
	}
	return exit.Usagef("--graph %q: the server has no such graph", o.Graph).WithHint("%s", hintNames(names))
}

// hintNames lists the first of some names.
func hintNames(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "it has none"
	}
	text := "it has " + strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func (s *Session) printNoQuestions(text string) error {
	p := s.NewPrinter()
	p.PrintLine("%s", p.Colorize(output.Dim, text))
	return p.WriteError()
}

// printInterrupts prints questions, and with each open one the command that answers it.
func (s *Session) printInterrupts(ctx context.Context, all []*graphdv1.Interrupt) error {
	p := s.NewPrinter()
	p.RecordReplaced(s.FetchReplaced(ctx, all)...)
	now := time.Now()
	for _, q := range all {
		origin := "  " + q.GetGraph() + "  " + output.FormatAge(q.GetCreateTime(), now) + " ago" + formatStateNote(q)
		p.PrintLine("%s", p.Colorize(output.Yellow, q.GetThreadId())+p.Colorize(output.Dim, origin))
		p.PrintInterrupt(q)
		if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
			name := QuestionName{Thread: q.GetThreadId()}
			if len(all) > 1 {
				name.Interrupt = q.GetInterruptId()
			}
			p.PrintLine("    %s", p.Colorize(output.Dim, s.answerCommand(name)))
		}
	}
	return p.WriteError()
}

func formatStateNote(q *graphdv1.Interrupt) string {
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		return ""
	}
	return "  " + output.InterruptStateName(q)
}
