package cli_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

// scriptedCall is the answer to one call: it sends the events and ends with the
// error.
type scriptedCall struct {
	events        []*graphdv1.Event
	lastEventGate <-chan struct{} // nil = the last event comes at once
	err           error
}

// scriptedServer answers each call with the next of its calls, and records the
// requests.
type scriptedServer struct {
	graphdv1.UnimplementedGraphServiceServer
	graphdv1.UnimplementedInterruptServiceServer

	calls      []scriptedCall
	interrupts []*graphdv1.Interrupt
	replaced   *graphdv1.Interrupt // the question that others have replaced
	trail      []*graphdv1.TrailEntry
	trailErr   error
	streams    []*graphdv1.StreamRequest
	resumes    []*graphdv1.ResumeRequest
	watches    []*graphdv1.WatchRequest
	answers    []*graphdv1.AnswerInterruptsRequest

	refusal string // why the store takes no changes
}

// healthServer is the health service of a scriptedServer.
type healthServer struct {
	grpc_health_v1.UnimplementedHealthServer

	refusal string
}

func (s healthServer) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if s.refusal == "" {
		return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING},
		grpc.SetHeader(ctx, metadata.Pairs("graphd-refusal", s.refusal))
}

func (s *scriptedServer) sendNext(send func(*graphdv1.Event) error) error {
	if len(s.calls) == 0 {
		return status.Error(codes.FailedPrecondition, "the test has no more plays")
	}
	p := s.calls[0]
	s.calls = s.calls[1:]
	for i, e := range p.events {
		if p.lastEventGate != nil && i == len(p.events)-1 {
			<-p.lastEventGate
		}
		if err := send(e); err != nil {
			return err
		}
	}
	return p.err
}

func (s *scriptedServer) Stream(r *graphdv1.StreamRequest, w grpc.ServerStreamingServer[graphdv1.Event]) error {
	s.streams = append(s.streams, r)
	return s.sendNext(w.Send)
}

func (s *scriptedServer) Resume(r *graphdv1.ResumeRequest, w grpc.ServerStreamingServer[graphdv1.Event]) error {
	s.resumes = append(s.resumes, r)
	return s.sendNext(w.Send)
}

func (s *scriptedServer) Watch(r *graphdv1.WatchRequest, w grpc.ServerStreamingServer[graphdv1.Event]) error {
	s.watches = append(s.watches, r)
	return s.sendNext(w.Send)
}

func (s *scriptedServer) ListInterrupts(
	context.Context, *graphdv1.ListInterruptsRequest,
) (*graphdv1.ListInterruptsResponse, error) {
	return &graphdv1.ListInterruptsResponse{Interrupts: s.interrupts}, nil
}

func (s *scriptedServer) GetInterrupt(context.Context, *graphdv1.GetInterruptRequest) (*graphdv1.Interrupt, error) {
	if s.replaced == nil {
		return nil, refusedError(codes.NotFound, "INTERRUPT_NOT_FOUND")
	}
	return s.replaced, nil
}

func (s *scriptedServer) ListTrail(context.Context, *graphdv1.ListTrailRequest) (*graphdv1.ListTrailResponse, error) {
	return &graphdv1.ListTrailResponse{Entries: s.trail}, s.trailErr
}

// newSession connects a command to a server. in is the input that is typed.
func newSession(t *testing.T, s *scriptedServer, in string) (*cli.Session, *bytes.Buffer) {
	t.Helper()
	pipe := bufconn.Listen(1 << 20)
	server := grpc.NewServer()
	graphdv1.RegisterGraphServiceServer(server, s)
	graphdv1.RegisterInterruptServiceServer(server, s)
	grpc_health_v1.RegisterHealthServer(server, healthServer{refusal: s.refusal})
	served := make(chan error, 1)
	go func() { served <- server.Serve(pipe) }()
	client, err := client.DialServer("passthrough:///stage", client.Security{}, grpc.WithContextDialer(
		func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close())
		server.Stop()
		require.NoError(t, <-served)
	})
	out := &bytes.Buffer{}
	t.Cleanup(func() { require.NotContains(t, out.String(), "%!", "a verb does not fit its argument") })
	return &cli.Session{
		Client: client, Invocation: shell.Invocation{Program: []string{"graphd"}},
		Output: output.Output{IO: output.IO{In: strings.NewReader(in), Out: out, Err: out}, Format: output.Text},
	}, out
}

// refusedError makes the error of a call.
func refusedError(code codes.Code, reason string) error {
	return refusedWithMetadata(code, reason, nil)
}

func refusedWithMetadata(code codes.Code, reason string, metadata map[string]string) error {
	st, err := status.New(code, "the server said no").
		WithDetails(&errdetails.ErrorInfo{Domain: "graphd.dev", Reason: reason, Metadata: metadata})
	if err != nil {
		return err
	}
	return st.Err()
}

// withCursor gives an event its place in the log.
func withCursor(sequence uint64, e *graphdv1.Event) *graphdv1.Event {
	e.Cursor, e.ThreadId, e.RunId = &graphdv1.Cursor{LogId: "log", Sequence: sequence}, "t1", "r1"
	return e
}

func openedEvent() *graphdv1.Event {
	return withCursor(0, &graphdv1.Event{Kind: &graphdv1.Event_Opened{Opened: &graphdv1.StreamOpened{
		Run: &graphdv1.Run{RunId: "r1", ThreadId: "t1"},
	}}})
}

func updateEvent(sequence uint64, node, values string) *graphdv1.Event {
	return withCursor(sequence, &graphdv1.Event{
		Node: node, Kind: &graphdv1.Event_Update{Update: &graphdv1.NodeUpdate{Values: newPayload(values)}},
	})
}

func endEvent(cause graphdv1.EndOfStream_Cause, after uint64, state graphdv1.RunState) *graphdv1.Event {
	return &graphdv1.Event{ThreadId: "t1", Kind: &graphdv1.Event_End{End: &graphdv1.EndOfStream{
		Cause: cause, ResumeAt: &graphdv1.Cursor{LogId: "log", Sequence: after},
		Run: &graphdv1.Run{RunId: "r1", ThreadId: "t1", State: state, Output: newPayload(`{"n":1}`)},
	}}}
}

func newPayload(json string) *graphdv1.Payload {
	return &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: json}}
}
