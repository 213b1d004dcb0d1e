package client

import (
	"context"
	"errors"
	"iter"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Inbox returns the open questions that a filter selects, like `mine = "true"`; "" = all that the
// caller may see. A breakpoint is among them, with the reason "breakpoint". Pages are read as they are
// needed. An error is the last element.
func (c *Client) Inbox(ctx context.Context, filter string) iter.Seq2[*graphdv1.Interrupt, error] {
	return c.list(ctx, &graphdv1.ListInterruptsRequest{Filter: filter})
}

// Questions returns the open questions of a thread. One that is not there has none. A breakpoint is
// no question.
func (c *Client) Questions(ctx context.Context, thread string) ([]*graphdv1.Interrupt, error) {
	open, err := c.listQuestions(ctx, thread)
	if errors.Is(err, ThreadNotFound) {
		return nil, nil
	}
	return open, err
}

func (c *Client) listQuestions(ctx context.Context, thread string) ([]*graphdv1.Interrupt, error) {
	var open []*graphdv1.Interrupt
	for q, err := range c.list(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread, PageSize: longPage}) {
		if err != nil {
			return nil, err
		}
		if !isBreakpoint(q) {
			open = append(open, q)
		}
	}
	return open, nil
}

// isBreakpoint reports whether the thread waits before or after a node, and not for an answer. A node
// may give its question any reason.
func isBreakpoint(q *graphdv1.Interrupt) bool {
	return q.GetReason() == "breakpoint" && q.GetTaskId() == ""
}

// longPage is how many questions a server lists at most in a page.
const longPage = 500

// list lists questions page by page.
func (c *Client) list(ctx context.Context, first *graphdv1.ListInterruptsRequest) iter.Seq2[*graphdv1.Interrupt, error] {
	return func(yield func(*graphdv1.Interrupt, error) bool) {
		request := &graphdv1.ListInterruptsRequest{ThreadId: first.GetThreadId(), Filter: first.GetFilter(), PageSize: first.GetPageSize()}
		for {
			page, err := repeat(ctx, c, func() (*graphdv1.ListInterruptsResponse, error) { return c.Interrupts().ListInterrupts(ctx, request) })
			if err != nil {
				yield(nil, err)
				return
			}
			for _, q := range page.GetInterrupts() {
				if !yield(q, nil) {
					return
				}
			}
			if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
				return
			}
		}
	}
}
