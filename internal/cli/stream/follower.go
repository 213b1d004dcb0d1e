package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/report"
)

// EventStream is the stream of a call that sends events.
type EventStream = grpc.ServerStreamingClient[graphdv1.Event]

// follower reads a stream to its end. When the stream breaks it continues from the
// last cursor with Watch, because a run belongs to the server and not to the
// connection.
type follower struct {
	graphs graphdv1.GraphServiceClient
	Selection
	// onEvent gets every event, except the opening of a stream that replaces
	// another.
	onEvent func(*graphdv1.Event) error
	// onReconnect is called when the connection broke and is made again.
	onReconnect func(error)
	// reconnectTimeout bounds the time that a server may be away.
	reconnectTimeout time.Duration
	// endsWithLog follows to the present end of the log only.
	endsWithLog bool

	// followsRun follows the run that the first stream shows, instead of the whole
	// thread.
	followsRun bool

	thread   string
	run      string // "" = the thread across its runs
	cursor   *graphdv1.Cursor
	isOpened bool
	end      *graphdv1.EndOfStream
}

// followToEnd reads until the stream has ended in order for good, and returns its
// end.
func (f *follower) followToEnd(
	ctx context.Context, open func(context.Context) (EventStream, error),
) (*graphdv1.EndOfStream, error) {
	retry := client.NewRetryTimer(f.reconnectTimeout)
	defer retry.StopTimer()
	for {
		before := f.cursor.GetSequence()
		err := f.readStream(ctx, open)
		switch {
		case err == nil && !asksToReconnect(f.end):
			return f.end, nil
		case err != nil && !f.canReconnect(err):
			return nil, err
		case err == nil && f.thread == "":
			return f.end, nil
		}
		if f.cursor.GetSequence() > before {
			retry.ResetDelay()
		}
		if err != nil {
			f.onReconnect(err)
		}
		if !retry.WaitForAttempt(ctx) {
			if err == nil {
				err = errDrained
			}
			return nil, errors.Join(ctx.Err(), err)
		}
		if f.isOpened {
			open = f.reopenStream
		}
	}
}

var errDrained = errors.New("the server shuts down and none has taken its place")

// asksToReconnect reports whether the server asks the client to continue on a new
// connection.
func asksToReconnect(end *graphdv1.EndOfStream) bool {
	cause := end.GetCause()
	return cause == graphdv1.EndOfStream_CAUSE_DRAINING || cause == graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER
}

// canReconnect reports whether another attempt is safe and may help. Before the
// first event it tries again only if a server has answered, with the same request
// id. Without an answer the address is more likely wrong.
func (f *follower) canReconnect(err error) bool {
	if reason := report.Reason(err); reason != "" {
		again, _ := client.IsRetryable(reason)
		return again
	}
	broken := status.Code(err) == codes.Unavailable || errors.Is(err, io.ErrUnexpectedEOF)
	return f.isOpened && broken
}

// reopenStream opens the stream that continues the broken stream.
func (f *follower) reopenStream(ctx context.Context) (EventStream, error) {
	req := &graphdv1.WatchRequest{ThreadId: f.thread, RunId: f.run, Filter: f.Filter, Follow: !f.endsWithLog}
	if f.cursor != nil {
		req.Start = &graphdv1.WatchRequest_After{After: f.cursor}
	}
	return f.graphs.Watch(ctx, req)
}

// readStream shows one stream until it ends. A stream that closes without an end
// message is broken.
func (f *follower) readStream(ctx context.Context, open func(context.Context) (EventStream, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := open(ctx)
	if err != nil {
		return err
	}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		first := f.recordPosition(e)
		if e.GetOpened() == nil || first {
			if err := f.onEvent(e); err != nil {
				return err
			}
		}
		if f.end = e.GetEnd(); f.end != nil {
			return nil
		}
	}
}

// recordPosition records the position of the stream. It reports whether this is the
// first event of all.
func (f *follower) recordPosition(e *graphdv1.Event) bool {
	if c := e.GetCursor(); c != nil {
		f.cursor = c
	}
	switch k := e.GetKind().(type) {
	case *graphdv1.Event_Heartbeat:
		f.cursor = k.Heartbeat.GetScanned()
	case *graphdv1.Event_End:
		f.cursor = k.End.GetResumeAt()
	}
	if f.isOpened {
		return false
	}
	f.isOpened, f.thread = true, e.GetThreadId()
	if f.followsRun {
		f.run = e.GetOpened().GetRun().GetRunId()
	}
	return true
}
