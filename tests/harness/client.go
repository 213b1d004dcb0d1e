// Package harness is what tests of several processes share: servers and their clients,
// calls that are repeated, streams, ledgers of effects and counts of faults.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Client is one connection to a server, and all that can be called on it.
type Client struct {
	graphdv1.GraphServiceClient
	graphdv1.ThreadServiceClient
	graphdv1.InterruptServiceClient
	graphdv1.RegistryServiceClient
	graphdv1.WorkerServiceClient

	Conn *grpc.ClientConn
}

// Dial makes a client of the server at an address. It is closed with the test.
func Dial(tb testing.TB, address string, options ...grpc.DialOption) Client {
	tb.Helper()
	conn, err := grpc.NewClient(address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}, options...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return NewClient(conn)
}

// NewClient makes a client of a connection.
func NewClient(conn *grpc.ClientConn) Client {
	return Client{
		GraphServiceClient: graphdv1.NewGraphServiceClient(conn), ThreadServiceClient: graphdv1.NewThreadServiceClient(conn),
		InterruptServiceClient: graphdv1.NewInterruptServiceClient(conn), RegistryServiceClient: graphdv1.NewRegistryServiceClient(conn),
		WorkerServiceClient: graphdv1.NewWorkerServiceClient(conn), Conn: conn,
	}
}

// NewPayload makes a value of JSON text.
func NewPayload(json string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: json}}
}

// ReasonOf returns the reason in an error; where it has none, its code.
func ReasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return status.Code(err).String()
}

// IsEnded reports whether a run in this state goes on no more.
func IsEnded(s graphdv1.RunState) bool {
	return s == graphdv1.RunState_RUN_STATE_SUCCEEDED || s == graphdv1.RunState_RUN_STATE_FAILED ||
		s == graphdv1.RunState_RUN_STATE_CANCELLED
}

// IsStopped reports whether a run has ended or waits for answers. WaitRun also returns when
// its time has passed, with a run that has not stopped.
func IsStopped(state graphdv1.RunState) bool {
	return state == graphdv1.RunState_RUN_STATE_INTERRUPTED || IsEnded(state)
}

// StoredEvents selects all events that are stored.
func StoredEvents() *graphdv1.EventFilter {
	return &graphdv1.EventFilter{Channels: []graphdv1.Channel{
		graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_UPDATES, graphdv1.Channel_CHANNEL_MESSAGES,
		graphdv1.Channel_CHANNEL_CUSTOM, graphdv1.Channel_CHANNEL_TASKS, graphdv1.Channel_CHANNEL_CHECKPOINTS,
	}}
}

// RepeatCall makes a call until it ends with none of the codes, and pauses in between.
// repeats is how often it was made again. An error of ctx also names the last one.
func RepeatCall[Resp any](
	ctx context.Context, while []codes.Code, pause time.Duration, call func(ctx context.Context) (Resp, error),
) (resp Resp, repeats int, err error) {
	for ; ; repeats++ {
		resp, err = call(ctx)
		if !slices.Contains(while, status.Code(err)) {
			return resp, repeats, err
		}
		if !SleepContext(ctx, pause) {
			return resp, repeats, fmt.Errorf("%w, last: %w", ctx.Err(), err)
		}
	}
}

// ReadStream shows the events of one stream that have a cursor. A stream that follows
// is left when a run has ended, which isOver reports.
func ReadStream(
	ctx context.Context, c graphdv1.GraphServiceClient, req *graphdv1.WatchRequest, see func(*graphdv1.Event),
) (isOver bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.Watch(ctx, req)
	if err != nil {
		return false, err
	}
	for {
		e, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return isOver, nil
		case err != nil:
			return isOver, err
		case e.GetCursor() != nil && e.GetOpened() == nil:
			see(e)
		}
		if isOver = isOver || IsEnded(e.GetRunState().GetState()); isOver && req.GetFollow() {
			return true, nil
		}
	}
}

// SleepContext waits. It reports false when ctx has ended.
func SleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
