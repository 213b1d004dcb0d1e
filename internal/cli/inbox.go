package cli

import (
	"context"
	"strconv"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// InboxOptions are the flags of `inbox`.
type InboxOptions struct {
	Thread string // "" = all threads
	Filter string
	Limit  int // 0 = all
	Watch  bool
}

// ShowInbox lists the open questions, or follows them. Errors: gRPC statuses, and
// those of the output.
func (s *Session) ShowInbox(ctx context.Context, o InboxOptions) error {
	if o.Watch {
		return s.watchInterrupts(ctx, o)
	}
	all, err := client.CollectPages(o.Limit, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
		resp, err := s.Interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{
			ThreadId: o.Thread, Filter: o.Filter, PageSize: size, PageToken: token,
		})
		return resp.GetInterrupts(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	if len(all) == 0 && o.Thread != "" {
		if _, err := s.Threads.GetThread(ctx, &graphdv1.GetThreadRequest{ThreadId: o.Thread}); err != nil {
			return err // there is no such thread
		}
	}
	if s.Format != output.Text {
		return output.ShowList(&s.Output, &graphdv1.ListInterruptsResponse{Interrupts: all}, all)
	}
	return s.printInterrupts(ctx, all)
}

// printInterrupts prints questions, and with each open one the command that answers it.
func (s *Session) printInterrupts(ctx context.Context, all []*graphdv1.Interrupt) error {
	p := s.NewPrinter()
	if len(all) == 0 {
		p.PrintLine("%s", p.Colorize(output.Dim, "no open questions"))
		return p.WriteError()
	}
	p.RecordReplaced(s.FetchReplaced(ctx, all)...)
	now := time.Now()
	for _, q := range all {
		origin := "  " + q.GetGraph() + "  " + output.FormatAge(q.GetCreateTime(), now) + " ago" + formatStateNote(q)
		p.PrintLine("%s", p.Colorize(output.Yellow, q.GetThreadId())+p.Colorize(output.Dim, origin))
		p.PrintInterrupt(q)
		if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
			p.PrintLine("    %s", p.Colorize(output.Dim, s.Invocation.CommandLine(form.ResumeArgsFor(q)...)))
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

// watchInterrupts follows the questions until the caller cancels, over restarts of
// the server.
func (s *Session) watchInterrupts(ctx context.Context, o InboxOptions) error {
	req := &graphdv1.WatchInterruptsRequest{Filter: o.Filter}
	if o.Thread != "" {
		req.Filter = joinFilters(req.Filter, "thread_id = "+strconv.Quote(o.Thread))
	}
	r := client.NewRetryTimer(stream.ReconnectTimeout)
	defer r.StopTimer()
	heard, lost := false, false
	for {
		err := s.readInterruptChanges(ctx, req, func() { heard, lost = true, false; r.ResetDelay() })
		again, _ := client.IsRetryable(report.Reason(err))
		switch {
		case ctx.Err() != nil:
			return nil
		case (!heard || !report.IsUnreachable(err)) && !again:
			return err
		}
		if s.Format == output.Text && !lost {
			s.PrintNote("%s", report.ExplainReconnect(err))
		}
		lost = true
		switch {
		case r.WaitForAttempt(ctx):
		case ctx.Err() != nil:
			return nil // cancelled while the server was away
		default:
			return err
		}
	}
}

// readInterruptChanges shows changes until the stream ends, and always returns an
// error.
func (s *Session) readInterruptChanges(ctx context.Context, req *graphdv1.WatchInterruptsRequest, heard func()) error {
	changes, err := s.Interrupts.WatchInterrupts(ctx, req)
	if err != nil {
		return err
	}
	for {
		change, err := changes.Recv()
		if err != nil {
			return err
		}
		heard()
		req.ResumeToken = change.GetResumeToken()
		if err := s.showInterruptChange(ctx, change); err != nil {
			return err
		}
	}
}

func (s *Session) showInterruptChange(ctx context.Context, change *graphdv1.InterruptChange) error {
	if s.Format != output.Text {
		return s.ShowMessage(change)
	}
	q := change.GetInterrupt()
	if q == nil {
		return nil
	}
	p := s.NewPrinter()
	p.PrintLine("%s  %s  %s",
		p.Colorize(output.Yellow, q.GetThreadId()), output.InterruptStateName(q), p.Colorize(output.Dim, output.FormatTime(q.GetUpdateTime())))
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		p.RecordReplaced(s.FetchReplaced(ctx, []*graphdv1.Interrupt{q})...)
		p.PrintInterrupt(q)
	}
	if len(q.GetAccepted()) > 0 {
		p.PrintResolved(q, q.GetResponder())
	}
	return p.WriteError()
}
