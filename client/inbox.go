package client

import (
	"context"
	"errors"
	"iter"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Inbox returns the open questions that a filter selects, like `mine = "true"`; "" = all that the
// caller may see. Pages are read as they are needed. An error is the last element.
func (c *Client) Inbox(ctx context.Context, filter string) iter.Seq2[*graphdv1.Interrupt, error] {
	return func(yield func(*graphdv1.Interrupt, error) bool) {
		request := &graphdv1.ListInterruptsRequest{Filter: filter}
		for {
			page, err := c.Interrupts().ListInterrupts(ctx, request)
			if err != nil {
				yield(nil, toError(ctx, err))
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

// Questions returns the open questions of a thread. One that is not there has none.
func (c *Client) Questions(ctx context.Context, thread string) ([]*graphdv1.Interrupt, error) {
	open, err := c.Interrupts().ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread})
	err = toError(ctx, err)
	if errors.Is(err, Reason("THREAD_NOT_FOUND")) {
		return nil, nil
	}
	return open.GetInterrupts(), err
}
