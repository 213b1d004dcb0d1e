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

// Inbox lists the open questions, or follows them.
func (s *Session) Inbox(ctx context.Context, o InboxOptions) error {
	if o.Watch {
		return s.watchInbox(ctx, o)
	}
	all, err := collect(o.Limit, func(token string, size int32) ([]*graphdv1.Interrupt, string, error) {
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
		return list(s, &graphdv1.ListInterruptsResponse{Interrupts: all}, all)
	}
	p := s.page()
	if len(all) == 0 {
		p.line("%s", p.paint(dim, "nobody is asked anything"))
		return p.err
	}
	s.lookBack(ctx, p, all)
	now := time.Now()
	for _, q := range all {
		p.line("%s", p.paint(yellow, q.GetThreadId())+p.paint(dim, "  "+q.GetGraph()+"  "+age(q.GetCreateTime(), now)+" ago"+stateNote(q)))
		p.question(q)
		if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
			p.line("    %s", p.paint(dim, s.Self.Command(inboxArgs(q)...)))
		}
	}
	return p.err
}

// inboxArgs answer one question among others that may be open.
func inboxArgs(q *graphdv1.Interrupt) []string {
	if q.GetReason() == "breakpoint" {
		return []string{"resume", q.GetThreadId()}
	}
	example := formOf(q.GetResponseSchema().GetJson()).example()
	return []string{"resume", q.GetThreadId(), "--answer", q.GetInterruptId() + "=" + example}
}

func stateNote(q *graphdv1.Interrupt) string {
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		return ""
	}
	return "  " + questionWord(q)
}

// watchInbox follows the questions until the caller leaves, over restarts of
// the server.
func (s *Session) watchInbox(ctx context.Context, o InboxOptions) error {
	req := &graphdv1.WatchInterruptsRequest{Filter: o.Filter}
	if o.Thread != "" {
		req.Filter = both(req.Filter, "thread_id = "+strconv.Quote(o.Thread))
	}
	r := newRetry(patience)
	defer r.stop()
	heard, lost := false, false
	for {
		err := s.readInbox(ctx, req, func() { heard, lost = true, false; r.progress() })
		again, _ := MayPass(Reason(err))
		switch {
		case ctx.Err() != nil:
			return nil
		case (!heard || !unreachable(err)) && !again:
			return err
		}
		if s.Format == Text && !lost {
			s.note("%s", why(err))
		}
		lost = true
		switch {
		case r.wait(ctx):
		case ctx.Err() != nil:
			return nil // left while the server was away
		default:
			return err
		}
	}
}

// readInbox shows changes until the stream ends, which is always an error.
func (s *Session) readInbox(ctx context.Context, req *graphdv1.WatchInterruptsRequest, heard func()) error {
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
		if err := s.showChange(ctx, change); err != nil {
			return err
		}
	}
}

func (s *Session) showChange(ctx context.Context, change *graphdv1.InterruptChange) error {
	if s.Format != Text {
		return s.message(change)
	}
	q := change.GetInterrupt()
	if q == nil {
		return nil
	}
	p := s.page()
	p.line("%s  %s  %s", p.paint(yellow, q.GetThreadId()), questionWord(q), p.paint(dim, clock(q.GetUpdateTime())))
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN {
		s.lookBack(ctx, p, []*graphdv1.Interrupt{q})
		p.question(q)
	}
	if len(q.GetAccepted()) > 0 {
		p.resolved(q)
	}
	return p.err
}
