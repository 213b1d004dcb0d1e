package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

type eventStream = grpc.ServerStreamingClient[graphdv1.Event]

// follow reads a stream to its end and, when it breaks on the way, goes on
// from the last cursor with Watch: a run belongs to the server, not to the
// connection.
type follow struct {
	graphs graphdv1.GraphServiceClient
	selection
	// show gets every event but the opening of a stream that replaces another.
	show func(*graphdv1.Event) error
	// lost is told that the connection broke and is made again.
	lost func(error)
	// patience is how long a server may stay away before follow gives up.
	patience time.Duration
	// bounded follows to the present end of the log only.
	bounded bool

	// ofRun follows the run that the first stream shows, not the whole thread.
	ofRun bool

	thread string
	run    string // "" = the thread across its runs
	cursor *graphdv1.Cursor
	opened bool
	end    *graphdv1.EndOfStream
}

// to reads until the stream has ended in order for good, and returns how.
func (f *follow) to(
	ctx context.Context, open func(context.Context) (eventStream, error),
) (*graphdv1.EndOfStream, error) {
	retry := newRetry(f.patience)
	defer retry.stop()
	for {
		before := f.cursor.GetSequence()
		err := f.read(ctx, open)
		switch {
		case err == nil && !movesOn(f.end):
			return f.end, nil
		case err != nil && !f.canGoOn(err):
			return nil, err
		case err == nil && f.thread == "":
			return f.end, nil
		}
		if f.cursor.GetSequence() > before {
			retry.progress()
		}
		if err != nil {
			f.lost(err)
		}
		if !retry.wait(ctx) {
			if err == nil {
				err = errDrained
			}
			return nil, errors.Join(ctx.Err(), err)
		}
		if f.opened {
			open = f.again
		}
	}
}

var errDrained = errors.New("the server shuts down and none has taken its place")

// movesOn reports whether the server asks to go on elsewhere.
func movesOn(end *graphdv1.EndOfStream) bool {
	cause := end.GetCause()
	return cause == graphdv1.EndOfStream_CAUSE_DRAINING || cause == graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER
}

// canGoOn reports whether trying again is safe and may help. Before anything
// was heard only a server that answers is tried again, by the same request id;
// no server at all is more likely a wrong address.
func (f *follow) canGoOn(err error) bool {
	if reason := Reason(err); reason != "" {
		again, _ := MayPass(reason)
		return again
	}
	broken := status.Code(err) == codes.Unavailable || errors.Is(err, io.ErrUnexpectedEOF)
	return f.opened && broken
}

// MayPass reports whether a call that was refused for a reason is made again,
// with the same request id, and whether the reason is known to pass at all. What
// needs an operator, or a decision of the caller, is told at once.
func MayPass(reason string) (again, known bool) {
	switch reason {
	case "SERVER_DRAINING", "SLOW_CONSUMER", "STORE_UNAVAILABLE", "STORE_BUSY", "OUTCOME_UNKNOWN",
		"TOO_MANY_RUNS", "TOO_MANY_SUBSCRIBERS", "TOO_MANY_REQUESTS":
		return true, true
	case "STORE_FULL", "THREAD_QUEUE_FULL", "RATE_LIMITED", "TOO_MANY_GRAPHS", "NO_WORKER_AVAILABLE", "WORKER_SILENT":
		return false, true
	}
	return false, false
}

// again opens the stream that continues the one that broke.
func (f *follow) again(ctx context.Context) (eventStream, error) {
	req := &graphdv1.WatchRequest{ThreadId: f.thread, RunId: f.run, Filter: f.filter, Follow: !f.bounded}
	if f.cursor != nil {
		req.Start = &graphdv1.WatchRequest_After{After: f.cursor}
	}
	return f.graphs.Watch(ctx, req)
}

// read shows one stream until it ends. A stream that closes without an end
// broke.
func (f *follow) read(ctx context.Context, open func(context.Context) (eventStream, error)) error {
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
		first := f.take(e)
		if e.GetOpened() == nil || first {
			if err := f.show(e); err != nil {
				return err
			}
		}
		if f.end = e.GetEnd(); f.end != nil {
			return nil
		}
	}
}

// take remembers where the stream stands. It reports whether this is the first
// event of all.
func (f *follow) take(e *graphdv1.Event) bool {
	if c := e.GetCursor(); c != nil {
		f.cursor = c
	}
	switch k := e.GetKind().(type) {
	case *graphdv1.Event_Heartbeat:
		f.cursor = k.Heartbeat.GetScanned()
	case *graphdv1.Event_End:
		f.cursor = k.End.GetResumeAt()
	}
	if f.opened {
		return false
	}
	f.opened, f.thread = true, e.GetThreadId()
	if f.ofRun {
		f.run = e.GetOpened().GetRun().GetRunId()
	}
	return true
}

// retry spaces attempts and ends them.
type retry struct {
	timer    *time.Timer
	delay    time.Duration
	patience time.Duration
	deadline time.Time
}

const (
	firstDelay = 100 * time.Millisecond
	mostDelay  = 2 * time.Second
)

func newRetry(patience time.Duration) *retry {
	r := &retry{timer: time.NewTimer(0), patience: patience}
	<-r.timer.C
	r.progress()
	return r
}

func (r *retry) progress() { r.delay, r.deadline = firstDelay, time.Time{} }

func (r *retry) stop() { r.timer.Stop() }

// wait returns true when it is time for the next attempt.
func (r *retry) wait(ctx context.Context) bool {
	now := time.Now()
	if r.deadline.IsZero() {
		r.deadline = now.Add(r.patience)
	}
	if now.Add(r.delay).After(r.deadline) {
		return false
	}
	r.timer.Reset(r.delay)
	r.delay = min(2*r.delay, mostDelay)
	select {
	case <-r.timer.C:
		return true
	case <-ctx.Done():
		r.timer.Stop()
		return false
	}
}
