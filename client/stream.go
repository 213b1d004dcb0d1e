package client

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// events is what all streams of events have.
type events = grpc.ServerStreamingClient[graphdv1.Event]

// Stream starts a run and returns its events until it has ended or asks. When the connection
// breaks, the stream goes on after the last event; the run goes on meanwhile. It ends with its
// EndOfStream, or with an error as the last element.
func (c *Client) Stream(ctx context.Context, r Run) iter.Seq2[*graphdv1.Event, error] {
	spec, id, err := r.request() // a repeated call attaches to the run
	if err != nil {
		return failedSequence(err)
	}
	return c.follow(ctx, position{begin: func(ctx context.Context) (events, error) {
		return c.Graphs().Stream(ctx, &graphdv1.StreamRequest{Run: spec, RequestId: id})
	}})
}

// StreamResume is [Client.Resume] that returns the events, as [Client.Stream] does.
func (c *Client) StreamResume(ctx context.Context, thread string, answers ...Answer) iter.Seq2[*graphdv1.Event, error] {
	spec, err := newResume(thread, answers)
	if err != nil {
		return failedSequence(err)
	}
	id := requestID("")
	return c.follow(ctx, position{begin: func(ctx context.Context) (events, error) {
		return c.Graphs().Resume(ctx, &graphdv1.ResumeRequest{Resume: spec, RequestId: id})
	}})
}

// Watch returns the events of a thread after a cursor, across its runs, until ctx ends. nil = from
// the oldest event that is kept.
func (c *Client) Watch(ctx context.Context, thread string, after *graphdv1.Cursor) iter.Seq2[*graphdv1.Event, error] {
	return c.follow(ctx, position{thread: thread, after: after, begin: func(ctx context.Context) (events, error) {
		return c.Graphs().Watch(ctx, newWatch(thread, "", nil))
	}})
}

func newWatch(thread, run string, after *graphdv1.Cursor) *graphdv1.WatchRequest {
	r := &graphdv1.WatchRequest{ThreadId: thread, RunId: run, Follow: true}
	if after != nil {
		r.Start = &graphdv1.WatchRequest_After{After: after}
	}
	return r
}

func failedSequence(err error) iter.Seq2[*graphdv1.Event, error] {
	return func(yield func(*graphdv1.Event, error) bool) { yield(nil, err) }
}

// follow returns the events of a stream from a position on. The error of a server that was never
// reached ends it.
func (c *Client) follow(ctx context.Context, p position) iter.Seq2[*graphdv1.Event, error] {
	return func(yield func(*graphdv1.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		p := p
		for pauses := c.retries.begin(); ; {
			isDone, hasRead, err := c.readEvents(ctx, &p, yield)
			if hasRead {
				c.isReached.Store(true)
				pauses = c.retries.begin()
			}
			switch {
			case isDone:
				return
			case err != nil && (ctx.Err() != nil || !c.isReached.Load() || !isBroken(err) || !pauses.mayWait()):
				yield(nil, toError(ctx, err))
				return
			}
			if err := pauses.wait(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// position is where a stream goes on: begin opens it as long as no event has come, then Watch goes
// on after the last one.
type position struct {
	begin       func(context.Context) (events, error)
	thread, run string
	after       *graphdv1.Cursor
}

// note notes an event that has come.
func (p *position) note(e *graphdv1.Event) {
	if opened := e.GetOpened(); opened != nil {
		if p.thread == "" {
			p.thread, p.run = opened.GetRun().GetThreadId(), opened.GetRun().GetRunId()
		}
		return
	}
	if e.GetCursor() != nil {
		p.after = e.GetCursor()
	}
	if scanned := e.GetHeartbeat().GetScanned(); scanned != nil {
		p.after = scanned
	}
}

// readEvents opens the stream where it is and reads it. isDone says that it has ended in order, or
// that the caller wants no more.
func (c *Client) readEvents(ctx context.Context, p *position, yield func(*graphdv1.Event, error) bool) (isDone, hasRead bool, err error) {
	stream, err := p.open(ctx, c)
	if err != nil {
		return false, false, err
	}
	for {
		e, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil // without an end: it goes on
			}
			return false, hasRead, err
		}
		hasRead = true
		p.note(e)
		if end := e.GetEnd(); end != nil {
			switch end.GetCause() {
			case graphdv1.EndOfStream_CAUSE_DRAINING, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER:
				if end.GetResumeAt() != nil {
					p.after = end.GetResumeAt()
				}
				return false, hasRead, nil
			default:
			}
			yield(e, nil)
			return true, hasRead, nil
		}
		if e.GetHeartbeat() == nil && !yield(e, nil) {
			return true, hasRead, nil
		}
	}
}

// open opens the stream: anew, or after the last event.
func (p *position) open(ctx context.Context, c *Client) (events, error) {
	if p.after == nil || p.thread == "" {
		return p.begin(ctx)
	}
	return c.Graphs().Watch(ctx, newWatch(p.thread, p.run, p.after))
}
