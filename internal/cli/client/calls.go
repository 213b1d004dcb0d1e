package client

import (
	"context"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/argument"
)

// FetchGraph fetches a graph in full, by NAME or NAME@VERSION. Errors: gRPC
// statuses.
func (c *Client) FetchGraph(ctx context.Context, name string) (*graphdv1.Graph, error) {
	req := &graphdv1.GetGraphRequest{View: graphdv1.GraphView_GRAPH_VIEW_FULL}
	req.Graph, req.Version = argument.SplitGraphName(name)
	return c.Registry.GetGraph(ctx, req)
}

// ListGraphNames lists the names of the graphs of the server. Errors: gRPC statuses.
func (c *Client) ListGraphNames(ctx context.Context) ([]string, error) {
	return CollectPages(0, func(token string, size int32) ([]string, string, error) {
		resp, err := c.Registry.ListGraphs(ctx, &graphdv1.ListGraphsRequest{PageSize: size, PageToken: token})
		names := make([]string, 0, len(resp.GetGraphs()))
		for _, g := range resp.GetGraphs() {
			names = append(names, g.GetGraph())
		}
		return names, resp.GetNextPageToken(), err
	})
}

// PutGraphDocument sends the text of a graph file to the server, which checks and
// stores it. Errors: gRPC statuses.
func (c *Client) PutGraphDocument(ctx context.Context, name, text string) (*graphdv1.Graph, error) {
	return c.Registry.PutGraph(ctx, &graphdv1.PutGraphRequest{
		DocumentName: name, Definition: &graphdv1.PutGraphRequest_Document{Document: text},
	})
}

// ListOpenInterrupts lists the open questions of a thread. Errors: gRPC statuses.
func (c *Client) ListOpenInterrupts(ctx context.Context, thread string) ([]*graphdv1.Interrupt, error) {
	var all []*graphdv1.Interrupt
	req := &graphdv1.ListInterruptsRequest{ThreadId: thread}
	for {
		resp, err := c.Interrupts.ListInterrupts(ctx, req)
		if err != nil {
			return nil, err
		}
		all = append(all, resp.GetInterrupts()...)
		if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
			return all, nil
		}
	}
}

// ListNewestThreads lists the threads that changed last. Errors: gRPC statuses.
func (c *Client) ListNewestThreads(ctx context.Context, most int32) ([]*graphdv1.Thread, error) {
	resp, err := c.Threads.ListThreads(ctx, &graphdv1.ListThreadsRequest{PageSize: most})
	return resp.GetThreads(), err
}

// ListOldestQuestions lists the open questions of a thread, "" = of all, that were asked first.
// Errors: gRPC statuses.
func (c *Client) ListOldestQuestions(ctx context.Context, thread string, most int32) ([]*graphdv1.Interrupt, error) {
	resp, err := c.Interrupts.ListInterrupts(ctx, &graphdv1.ListInterruptsRequest{ThreadId: thread, PageSize: most})
	return resp.GetInterrupts(), err
}

// FetchReplaced reads the questions that others have replaced. It leaves out
// questions that can't be read.
func (c *Client) FetchReplaced(ctx context.Context, questions []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	var replaced []*graphdv1.Interrupt
	isRead := make(map[string]bool)
	for _, q := range questions {
		if q.GetReplaces() == "" || isRead[q.GetReplaces()] {
			continue
		}
		isRead[q.GetReplaces()] = true
		before, err := c.Interrupts.GetInterrupt(ctx, &graphdv1.GetInterruptRequest{
			ThreadId: q.GetThreadId(), InterruptId: q.GetReplaces(),
		})
		if err == nil {
			replaced = append(replaced, before)
		}
	}
	return replaced
}

// ListTrail lists what happened to a question, oldest first. Errors: gRPC statuses.
func (c *Client) ListTrail(ctx context.Context, q *graphdv1.Interrupt) ([]*graphdv1.TrailEntry, error) {
	return CollectPages(0, func(token string, size int32) ([]*graphdv1.TrailEntry, string, error) {
		resp, err := c.Interrupts.ListTrail(ctx, &graphdv1.ListTrailRequest{
			ThreadId: q.GetThreadId(), InterruptId: q.GetInterruptId(), PageSize: size, PageToken: token,
		})
		return resp.GetEntries(), resp.GetNextPageToken(), err
	})
}

// ListCheckpoints lists the checkpoints of a thread, newest first; limit 0 = all.
// Errors: gRPC statuses.
func (c *Client) ListCheckpoints(ctx context.Context, thread string, limit int, values bool) ([]*graphdv1.StateSnapshot, error) {
	return CollectPages(limit, func(token string, size int32) ([]*graphdv1.StateSnapshot, string, error) {
		resp, err := c.Threads.ListCheckpoints(ctx, &graphdv1.ListCheckpointsRequest{
			ThreadId: thread, PageSize: size, PageToken: token, IncludeValues: values,
		})
		return resp.GetCheckpoints(), resp.GetNextPageToken(), err
	})
}

// CollectPages reads pages until there are limit elements; 0 = all. Errors: those
// of page.
func CollectPages[T any](limit int, page func(token string, size int32) ([]T, string, error)) ([]T, error) {
	all, _, err := CollectSome(limit, page)
	return all, err
}

// CollectSome is CollectPages that also reports whether there may be more. Errors: those of
// page.
func CollectSome[T any](limit int, page func(token string, size int32) ([]T, string, error)) (all []T, more bool, err error) {
	const most = 500
	all = []T{}
	token := ""
	for {
		size := int32(most)
		if left := limit - len(all); limit > 0 && left < most {
			size = int32(left)
		}
		some, next, err := page(token, size)
		if err != nil {
			return nil, false, err
		}
		all = append(all, some...)
		if token = next; token == "" || (limit > 0 && len(all) >= limit) {
			return all, token != "", nil
		}
	}
}
