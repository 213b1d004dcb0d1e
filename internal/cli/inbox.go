package cli

import (
	"context"
	"strconv"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// InboxOptions are the flags of `inbox`.
type InboxOptions struct {
	Thread string // "" = all threads
	Filter string
	Limit  int // 0 = all
	Watch  bool
}

// ShowInbox lists the open questions, or follows them.
func (s *Session) ShowInbox(ctx context.Context, o InboxOptions) error {
	if o.Watch {
		return s.watchInterrupts(ctx, o)
	}
	all, err := collectPages(o.Limit, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
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
			return err // nothing is asked, because there is no such thread
		}
	}
	if s.Format != Text {
		return showList(&s.Output, &graphdv1.ListInterruptsResponse{Interrupts: all}, all)
	}
	p := s.newPrinter()
	if len(all) == 0 {
		p.printLine("%s", p.colorize(dim, "no open questions"))
		return p.writeError()
	}
	p.recordReplaced(s.fetchReplaced(ctx, all)...)
	now := time.Now()
	for _, q := range all {
		p.printLine("%s", p.colorize(yellow, q.GetThreadId())+p.colorize(dim, "  "+q.GetGraph()+"  "+formatAge(q.GetCreateTime(), now)+" ago"+formatStateNote(q)))
		p.printInterrupt(q)
		if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
			p.printLine("    %s", p.colorize(dim, s.Invocation.CommandLine(resumeArgsFor(q)...)))
		}
	}
	return p.writeError()
}

// resumeArgsFor returns the arguments that answer one interrupt among others that
// may be open.
func resumeArgsFor(q *graphdv1.Interrupt) []string {
	if q.GetReason() == "breakpoint" {
		return []string{"resume", q.GetThreadId()}
	}
	example := parseForm(q.GetResponseSchema().GetJson()).exampleText()
	return []string{"resume", q.GetThreadId(), "--answer", q.GetInterruptId() + "=" + example}
}

func formatStateNote(q *graphdv1.Interrupt) string {
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		return ""
	}
	return "  " + interruptStateName(q)
}

// watchInterrupts follows the questions until the caller leaves, over restarts of
// the server.
func (s *Session) watchInterrupts(ctx context.Context, o InboxOptions) error {
	req := &graphdv1.WatchInterruptsRequest{Filter: o.Filter}
	if o.Thread != "" {
		req.Filter = joinFilters(req.Filter, "thread_id = "+strconv.Quote(o.Thread))
	}
	r := newRetryTimer(reconnectTimeout)
	defer r.stopTimer()
	heard, lost := false, false
	for {
		err := s.readInterruptChanges(ctx, req, func() { heard, lost = true, false; r.resetDelay() })
		again, _ := IsRetryable(Reason(err))
		switch {
		case ctx.Err() != nil:
			return nil
		case (!heard || !isUnreachable(err)) && !again:
			return err
		}
		if s.Format == Text && !lost {
			s.printNote("%s", explainReconnect(err))
		}
		lost = true
		switch {
		case r.waitForAttempt(ctx):
		case ctx.Err() != nil:
			return nil // left while the server was away
		default:
			return err
		}
	}
}

// readInterruptChanges shows changes until the stream ends, which is always an error.
func (s *Session) readInterruptChanges(ctx context.Context, req *graphdv1.WatchInterruptsRequest, heard func()) error {
	stream, err := s.Interrupts.WatchInterrupts(ctx, req)
	if err != nil {
		return err
	}
	for {
		change, err := stream.Recv()
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
	if s.Format != Text {
		return s.showMessage(change)
	}
	q := change.GetInterrupt()
	if q == nil {
		return nil
	}
	p := s.newPrinter()
	p.printLine("%s  %s  %s", p.colorize(yellow, q.GetThreadId()), interruptStateName(q), p.colorize(dim, formatTime(q.GetUpdateTime())))
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		p.recordReplaced(s.fetchReplaced(ctx, []*graphdv1.Interrupt{q})...)
		p.printInterrupt(q)
	}
	if len(q.GetAccepted()) > 0 {
		p.printResolved(q)
	}
	return p.writeError()
}
