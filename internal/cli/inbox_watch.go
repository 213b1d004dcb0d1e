package cli

import (
	"context"
	"strconv"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/report"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// maxChanges is the number of changes that a text watch takes in one message.
const maxChanges = 64

// watchInterrupts follows the questions until the caller cancels, over restarts of
// the server.
func (s *Session) watchInterrupts(ctx context.Context, thread, filter string) error {
	req := &graphdv1.WatchInterruptsRequest{Filter: filter}
	if s.Format == output.Text { // a line of JSON has a change and its token
		req.MaxChanges = maxChanges
	}
	if thread != "" {
		req.Filter = argument.JoinConditions(filter, "thread_id = "+strconv.Quote(thread))
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
		all := []*graphdv1.InterruptChange{change}
		if len(change.GetChanges()) > 0 {
			all = change.GetChanges()
		}
		for _, one := range all {
			if err := s.showInterruptChange(ctx, one); err != nil {
				return err
			}
		}
		req.ResumeToken = change.GetResumeToken()
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
	what := output.InterruptStateName(q)
	if change.GetGone() {
		what += ", no longer selected by the filter"
	}
	p.PrintLine("%s  %s  %s",
		p.Colorize(output.Yellow, q.GetThreadId()), what, p.Colorize(output.Dim, output.FormatTime(q.GetUpdateTime())))
	if q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN && !change.GetGone() {
		p.RecordReplaced(s.FetchReplaced(ctx, []*graphdv1.Interrupt{q})...)
		p.PrintInterrupt(q)
	}
	if len(q.GetAccepted()) > 0 {
		p.PrintResolved(q, q.GetResponder())
	}
	return p.WriteError()
}
