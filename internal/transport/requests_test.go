package transport_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// sendUnfinished makes a call and sends all of its request but the end.
func sendUnfinished(t *testing.T, c testClient, method string, request proto.Message) grpc.ClientStream {
	t.Helper()
	stream, err := c.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, method)
	require.NoError(t, err)
	require.NoError(t, stream.SendMsg(request))
	return stream
}

func requireReason(t *testing.T, err error, code codes.Code, want string) {
	t.Helper()
	require.Equal(t, code, status.Code(err), "%v", err)
	require.Equal(t, want, requireErrorInfo(t, err).GetReason())
}

func newPutGraph(bytes int) *graphdv1.PutGraphRequest {
	return &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: strings.Repeat("#", bytes)}}
}

// Unfinished requests are held up to the limit; a request that comes when they have arrived is
// served.
func TestUnfinishedRequestsAreBounded(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxIncoming, o.RequestPatience = 8<<20, time.Hour })
	var open []grpc.ClientStream
	for range 20 {
		open = append(open, sendUnfinished(t, c, graphdv1.RegistryService_PutGraph_FullMethodName, newPutGraph(1<<20)))
	}
	ended := make(chan error, len(open))
	for _, stream := range open {
		go func() { ended <- stream.RecvMsg(&graphdv1.Graph{}) }()
	}
	for range 12 { // which ones depends on the order in which they arrived
		require.Equal(t, codes.Canceled, status.Code(<-ended))
	}
	_, err := c.PutGraph(t.Context(), &graphdv1.PutGraphRequest{
		ValidateOnly: true, Definition: &graphdv1.PutGraphRequest_Document{Document: strings.Repeat("#", 1<<20)},
	})
	require.NotEqual(t, codes.Canceled, status.Code(err), "%v", err)
}

// A request, or a message of a stream, has to arrive within a time limit.
func TestRequestsArriveInTime(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.RequestPatience = 50 * time.Millisecond })
	for method, request := range map[string]proto.Message{
		graphdv1.ThreadService_GetThread_FullMethodName: &graphdv1.GetThreadRequest{ThreadId: "t1"},
		graphdv1.GraphService_Watch_FullMethodName:      &graphdv1.WatchRequest{ThreadId: "t1"},
	} {
		stream := sendUnfinished(t, c, method, request)
		require.Equal(t, codes.Canceled, status.Code(stream.RecvMsg(&graphdv1.Thread{})), method)
	}
	_, err := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	require.NoError(t, err)
}

func TestOpenCallsAreBounded(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxOpenCalls = 4 })
	var open []grpc.ClientStream
	for range 4 {
		open = append(open, sendUnfinished(t, c, graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "t1"}))
	}
	_, err := c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	requireReason(t, err, codes.ResourceExhausted, reason.TooManyRequests)
	for _, stream := range open {
		require.NoError(t, stream.CloseSend())
		require.NoError(t, stream.RecvMsg(&graphdv1.Thread{}))
	}
	require.Eventually(t, func() bool {
		_, err = c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
		return err == nil
	}, time.Minute, time.Millisecond)
}

// Watches of the health need no credentials. They leave most of the calls to others.
func TestWatchesOfTheHealthTakeAPartOfTheCalls(t *testing.T) {
	c := startServer(t, newFakeEngine(), withCallers, func(o *transport.Options) { o.MaxOpenCalls = 8 })
	health := healthpb.NewHealthClient(c.conn)
	watch := func() error {
		stream, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	require.NoError(t, watch())
	require.NoError(t, watch())
	requireReason(t, watch(), codes.ResourceExhausted, reason.TooManyRequests)
	_, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = c.GetThread(withHeaders(t, "Bearer token-of-ana"), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	require.NoError(t, err)
}

// slowRegistry answers when the test permits it.
type slowRegistry struct {
	fakeRegistry

	entered chan struct{}
	release chan struct{}
}

func (r *slowRegistry) PutGraph(context.Context, runtime.PutGraphRequest) (runtime.GraphEntry, error) {
	r.entered <- struct{}{}
	<-r.release
	return runtime.GraphEntry{}, runtime.Errorf(runtime.ReasonGraphExists, "there is one")
}

// Requests that wait to be served count as well: further large ones are refused,
// small ones are not.
func TestServedRequestsAreBounded(t *testing.T) {
	slow := &slowRegistry{entered: make(chan struct{}), release: make(chan struct{})}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxIncoming, o.Registry = 4<<20, slow })
	var served sync.WaitGroup
	for range 3 {
		served.Go(func() { _, _ = c.PutGraph(t.Context(), newPutGraph(1_000_000)) })
		<-slow.entered
	}
	_, err := c.PutGraph(t.Context(), newPutGraph(1_000_000))
	requireReason(t, err, codes.ResourceExhausted, reason.TooManyRequests)
	_, err = c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	require.NoError(t, err)
	close(slow.release)
	served.Wait()
	served.Go(func() { <-slow.entered })
	require.Eventually(t, func() bool {
		_, err = c.PutGraph(t.Context(), newPutGraph(1_000_000))
		return status.Code(err) == codes.AlreadyExists
	}, time.Minute, time.Millisecond, "the room is not given back")
	served.Wait()
}

// A message of two-byte parts would take a hundred times its size.
func TestMessagesOfEmptyPartsAreRefused(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxMessageBytes = 1 << 20 })
	responses := make([]*graphdv1.InterruptResponse, 400_000)
	for i := range responses {
		responses[i] = &graphdv1.InterruptResponse{}
	}
	_, err := c.ResumeRun(t.Context(), &graphdv1.ResumeRunRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "t1", Responses: responses}})
	requireReason(t, err, codes.InvalidArgument, runtime.ReasonPayloadTooLarge)
	stream, err := c.Resume(t.Context(), &graphdv1.ResumeRequest{Resume: &graphdv1.ResumeSpec{ThreadId: "t1", Responses: responses}})
	require.NoError(t, err)
	_, err = stream.Recv()
	requireReason(t, err, codes.InvalidArgument, runtime.ReasonPayloadTooLarge)
}

// A compressed message counts with its expanded size.
func TestCompressedRequestsCountAsWhatTheyBecome(t *testing.T) {
	slow := &slowRegistry{entered: make(chan struct{}), release: make(chan struct{})}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxIncoming, o.Registry = 4<<20, slow })
	var served sync.WaitGroup
	for range 3 {
		served.Go(func() { _, _ = c.PutGraph(t.Context(), newPutGraph(1_000_000), grpc.UseCompressor(gzip.Name)) })
		<-slow.entered
	}
	_, err := c.PutGraph(t.Context(), newPutGraph(1_000_000), grpc.UseCompressor(gzip.Name))
	requireReason(t, err, codes.ResourceExhausted, reason.TooManyRequests)
	close(slow.release)
	served.Wait()
}

// A small request that is not whole yet is not cancelled for large ones that are.
func TestSmallRequestsArriveBesideLargeOnes(t *testing.T) {
	slow := &slowRegistry{entered: make(chan struct{}), release: make(chan struct{})}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.MaxIncoming, o.RequestPatience, o.Registry = 4<<20, time.Hour, slow
	})
	var served sync.WaitGroup
	for range 3 {
		served.Go(func() { _, _ = c.PutGraph(t.Context(), newPutGraph(1_000_000)) })
		<-slow.entered
	}
	small := sendUnfinished(t, c, graphdv1.ThreadService_GetThread_FullMethodName, &graphdv1.GetThreadRequest{ThreadId: "t1"})
	for range 3 {
		_, err := c.PutGraph(t.Context(), newPutGraph(3_000_000), grpc.UseCompressor(gzip.Name))
		requireReason(t, err, codes.ResourceExhausted, reason.TooManyRequests)
	}
	require.NoError(t, small.CloseSend())
	require.NoError(t, small.RecvMsg(&graphdv1.Thread{}))
	close(slow.release)
	served.Wait()
}

// Streams of any length are counted message by message.
func TestMessagesOfAStreamAreGivenBack(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.MaxIncoming = 4 << 20 })
	stream, err := reflectionv1.NewServerReflectionClient(c.conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	for range 8 {
		require.NoError(t, stream.Send(&reflectionv1.ServerReflectionRequest{
			Host: strings.Repeat("x", 1_000_000), MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
		}))
		answer, err := stream.Recv()
		require.NoError(t, err)
		require.NotEmpty(t, answer.GetListServicesResponse().GetService())
	}
	_, err = c.PutGraph(t.Context(), newPutGraph(1_000_000))
	require.NotEqual(t, codes.ResourceExhausted, status.Code(err), "%v", err)
}
