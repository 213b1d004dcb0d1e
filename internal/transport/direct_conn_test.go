package transport_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// connectProcess returns the connection of the program that has the server of c in it, once that
// serves.
func connectProcess(t *testing.T, c testClient) grpc.ClientConnInterface {
	t.Helper()
	_, err := c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	return c.server.ConnectProcess(c.conn)
}

// connectRelayed returns the connection of a client of another door of the server of c.
func connectRelayed(t *testing.T, c testClient) grpc.ClientConnInterface {
	t.Helper()
	connectProcess(t, c) // it serves
	return c.server.ConnectRelayed(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, nil, c.conn)
}

// A call inside the process has the answer, or the error with all its details, of the same call over
// a connection: each method with an empty request, and some with one that is answered or refused.
func TestDirectConnsGiveWhatGRPCGives(t *testing.T) {
	e := newFakeEngine()
	e.interrupts = []checkpoint.Interrupt{{ID: "i1", Thread: "t1", Run: "run-1", Graph: "g", State: checkpoint.InterruptOpen, Value: `"ok?"`}}
	c := startServer(t, e)
	conns := []grpc.ClientConnInterface{c.conn, connectProcess(t, c), connectRelayed(t, c)}
	requests := []struct {
		method  string
		request proto.Message
	}{
		{graphdv1.GraphService_StartRun_FullMethodName, &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{ThreadId: "t1", Graph: "g"}}},
		{graphdv1.GraphService_GetRun_FullMethodName, &graphdv1.GetRunRequest{ThreadId: "t1", RunId: "run-1"}},
		{graphdv1.GraphService_GetRun_FullMethodName, &graphdv1.GetRunRequest{ThreadId: strings.Repeat("t", 9<<20)}},
		{graphdv1.InterruptService_ListInterrupts_FullMethodName, &graphdv1.ListInterruptsRequest{}},
		{graphdv1.InterruptService_ListInterrupts_FullMethodName, &graphdv1.ListInterruptsRequest{PageToken: "another's"}},
		{graphdv1.InterruptService_GetInterrupt_FullMethodName, &graphdv1.GetInterruptRequest{ThreadId: "t1", InterruptId: "i1"}},
		{graphdv1.RegistryService_GetServerInfo_FullMethodName, &graphdv1.GetServerInfoRequest{}},
	}
	for _, m := range unaryMethods(t) {
		name := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
		requests = append(requests, struct {
			method  string
			request proto.Message
		}{name, dynamicpb.NewMessage(m.Input())})
	}
	for _, r := range requests {
		t.Run(r.method, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "same")
			answers, headers, refusals := [3]proto.Message{}, [3]metadata.MD{}, [3]error{}
			for i, conn := range conns {
				answers[i] = newAnswer(t, r.method)
				refusals[i] = conn.Invoke(ctx, r.method, r.request, answers[i], grpc.Header(&headers[i]))
				requireSameStatus(t, status.Convert(refusals[0]), status.Convert(refusals[i]))
				requireSameMessage(t, answers[0], answers[i])
				require.Equal(t, headers[0].Get("x-request-id"), headers[i].Get("x-request-id"))
			}
		})
	}
}

func requireSameStatus(t *testing.T, want, got *status.Status) {
	t.Helper()
	require.Equal(t, want.Code(), got.Code(), "want %v\ngot %v", want, got)
	require.Len(t, got.Details(), len(want.Details()), "want %v\ngot %v", want, got)
	if len(want.Details()) == 0 {
		return // it is gRPC's own
	}
	require.Equal(t, want.Message(), got.Message())
	for i, detail := range want.Details() {
		require.IsType(t, detail, got.Details()[i])
		require.Equal(t, fmt.Sprint(detail), fmt.Sprint(got.Details()[i]))
	}
}

func requireSameMessage(t *testing.T, want, got proto.Message) {
	t.Helper()
	require.True(t, proto.Equal(want, got), "want %v\ngot %v", want, got)
}

// unaryMethods returns the unary methods of graphd.
func unaryMethods(t *testing.T) (all []protoreflect.MethodDescriptor) {
	t.Helper()
	protoregistry.GlobalFiles.RangeFilesByPackage("graphd.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			methods := f.Services().Get(i).Methods()
			for j := range methods.Len() {
				if m := methods.Get(j); !m.IsStreamingClient() && !m.IsStreamingServer() {
					all = append(all, m)
				}
			}
		}
		return true
	})
	require.Greater(t, len(all), 30)
	return all
}

// newAnswer returns an empty answer of a method.
func newAnswer(t *testing.T, method string) proto.Message {
	t.Helper()
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	require.NoError(t, err)
	described, ok := found.(protoreflect.MethodDescriptor)
	require.True(t, ok)
	made, err := protoregistry.GlobalTypes.FindMessageByName(described.Output().FullName())
	require.NoError(t, err)
	return made.New().Interface()
}

// The client and the server share no memory: neither sees what the other changes afterwards.
func TestProcessConnCopiesMessages(t *testing.T) {
	e := newFakeEngine()
	e.interrupts = []checkpoint.Interrupt{{ID: "i1", Thread: "t1", Run: "run-1", Graph: "g", State: checkpoint.InterruptOpen, Value: `"ok?"`}}
	c := startServer(t, e)
	direct := graphdv1.NewInterruptServiceClient(connectProcess(t, c))
	request := &graphdv1.GetInterruptRequest{ThreadId: "t1", InterruptId: "i1"}
	for range 2 {
		got, err := direct.GetInterrupt(t.Context(), request)
		require.NoError(t, err)
		require.JSONEq(t, `"ok?"`, got.GetValue().GetJson())
		got.Value = nil
		request = &graphdv1.GetInterruptRequest{ThreadId: "t1", InterruptId: "i1"}
	}
}

// The handler knows of its client what a connection would tell it, and nothing that the client's
// context has for itself.
func TestProcessConnPassesMetadataAlone(t *testing.T) {
	c := startServer(t, newFakeEngine())
	direct := graphdv1.NewRegistryServiceClient(connectProcess(t, c))
	type ownKey struct{}
	ctx := context.WithValue(t.Context(), ownKey{}, "own")
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("x-request-id", "of-another-call", "graphd-tenant", "globex"))
	ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", "mine")
	var header, trailer metadata.MD
	var server peer.Peer
	_, err := direct.GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{}, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&server))
	require.NoError(t, err)
	require.Equal(t, []string{"mine"}, header.Get("x-request-id"))
	require.Equal(t, "process", server.Addr.String())
	require.Equal(t, "process", server.AuthInfo.AuthType())

	_, err = direct.GetServerInfo(metadata.AppendToOutgoingContext(ctx, "graphd-tenant", "globex"), &graphdv1.GetServerInfoRequest{})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "the default tenant is the only one without callers: %v", err)
}

// A client does not wait for a handler when its context has ended, and the handler's context ends too.
func TestProcessConnEndsWithTheContextOfTheClient(t *testing.T) {
	c := startServer(t, newFakeEngine())
	direct := graphdv1.NewGraphServiceClient(connectProcess(t, c))
	_, err := direct.WaitRun(canceledContext(t), &graphdv1.WaitRunRequest{ThreadId: "t1", RunId: "run-1"})
	require.Equal(t, codes.Canceled, status.Code(err))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = direct.WaitRun(ctx, &graphdv1.WaitRunRequest{ThreadId: "t1", RunId: "run-1"}) // the run does not end
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.NoError(t, c.server.Drain(t.Context()), "no call is left")
}

func canceledContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A text that is not UTF-8 is refused before the server sees it, as by a connection.
func TestProcessConnRefusesBrokenTexts(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	for _, conn := range []grpc.ClientConnInterface{c.conn, connectProcess(t, c)} {
		_, err := graphdv1.NewInterruptServiceClient(conn).GetInterrupt(t.Context(), &graphdv1.GetInterruptRequest{ThreadId: "\xff", InterruptId: "i1"})
		require.ErrorContains(t, err, "invalid UTF-8")
	}
	require.Empty(t, e.requests)
}

// A panic of a handler ends the call alone.
func TestProcessConnContainsPanics(t *testing.T) {
	e := newFakeEngine()
	e.panics = true
	c := startServer(t, e)
	direct := graphdv1.NewInterruptServiceClient(connectProcess(t, c))
	_, err := direct.ListInterrupts(t.Context(), &graphdv1.ListInterruptsRequest{})
	require.Equal(t, codes.Internal, status.Code(err))
	require.NotContains(t, err.Error(), "broken")
}

// Streams, and calls with an option that only a connection can serve, take the connection.
func TestProcessConnUsesTheConnectionForStreams(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	conn := connectProcess(t, c)
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventUpdate, Node: "a", Value: payload.JSON("{}")})
	events, err := graphdv1.NewGraphServiceClient(conn).Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1"})
	require.NoError(t, err)
	_, err = events.Recv()
	require.NoError(t, err)
	_, err = graphdv1.NewRegistryServiceClient(conn).GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{}, grpc.UseCompressor("gzip"))
	require.NoError(t, err)
	var server peer.Peer
	_, err = graphdv1.NewRegistryServiceClient(conn).GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{}, grpc.Peer(&server), grpc.OnFinish(func(error) {}))
	require.NoError(t, err)
	require.Equal(t, "bufconn", server.Addr.String())
}

// startStuckCall begins a call of the process that is not answered before release. The channel gets
// its error.
func startStuckCall(t *testing.T) (c testClient, conn grpc.ClientConnInterface, release func(), ended <-chan error) {
	t.Helper()
	registry := stuckRegistry{&fakeRegistry{entries: []runtime.GraphEntry{{Graph: &graph.Graph{Name: "g"}}}}, make(chan struct{}), make(chan struct{})}
	c = startServer(t, newFakeEngine(), func(o *transport.Options) { o.Registry = registry })
	conn = connectProcess(t, c)
	answered := make(chan error, 1)
	go func() {
		_, err := graphdv1.NewRegistryServiceClient(conn).GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "g"})
		answered <- err
	}()
	<-registry.stuck
	return c, conn, sync.OnceFunc(func() { close(registry.release) }), answered
}

// A drained server has answered the calls of its process, and takes no more.
func TestDrainWaitsForCallsOfTheProcess(t *testing.T) {
	c, conn, release, ended := startStuckCall(t)
	drained := make(chan error, 1)
	go func() { drained <- c.server.Drain(t.Context()) }()
	registry := graphdv1.NewRegistryServiceClient(conn)
	refused := func() codes.Code {
		_, err := registry.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
		return status.Code(err)
	}
	require.Eventually(t, func() bool { return refused() == codes.Unavailable }, 10*time.Second, time.Millisecond, "clients call again")
	require.Empty(t, drained, "a call is open")
	release()
	require.NoError(t, <-ended)
	require.NoError(t, <-drained)
	require.Equal(t, codes.Unavailable, refused())
	c.server.CloseProcess()
	require.Equal(t, codes.Canceled, refused(), "clients do not call again")
}

// While calls of others are waited for, the process makes no further ones.
func TestDrainRefusesCallsOfTheProcessAtOnce(t *testing.T) {
	registry := stuckRegistry{&fakeRegistry{entries: []runtime.GraphEntry{{Graph: &graph.Graph{Name: "g"}}}}, make(chan struct{}), make(chan struct{})}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Registry = registry })
	direct := graphdv1.NewRegistryServiceClient(connectProcess(t, c))
	answered := make(chan error, 1)
	go func() {
		_, err := c.GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "g"})
		answered <- err
	}()
	<-registry.stuck
	drained := make(chan error, 1)
	go func() { drained <- c.server.Drain(t.Context()) }()
	require.Eventually(t, func() bool {
		_, err := direct.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
		return status.Code(err) == codes.Unavailable
	}, 10*time.Second, time.Millisecond)
	require.Empty(t, drained)
	close(registry.release)
	require.NoError(t, <-answered)
	require.NoError(t, <-drained)
}

// Metadata that a connection refuses is refused, whatever takes the call.
func TestProcessConnRefusesBrokenMetadata(t *testing.T) {
	c := startServer(t, newFakeEngine())
	for _, conn := range []grpc.ClientConnInterface{c.conn, connectProcess(t, c)} {
		for _, pair := range [][2]string{{"b ad", "x"}, {"key", "\x00"}, {"key", strings.Repeat("x", 1<<20)}} {
			ctx := metadata.NewOutgoingContext(t.Context(), metadata.MD{pair[0]: {pair[1]}})
			_, err := graphdv1.NewRegistryServiceClient(conn).GetServerInfo(ctx, &graphdv1.GetServerInfoRequest{})
			require.Error(t, err, "%.20q", pair)
		}
		_, err := graphdv1.NewRegistryServiceClient(conn).GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{}, grpc.MaxCallRecvMsgSize(1))
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
	}
}

// Drain does not wait longer than it may for a handler that does not end.
func TestDrainCutsCallsOfTheProcess(t *testing.T) {
	c, _, release, ended := startStuckCall(t)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.server.Drain(ctx), context.DeadlineExceeded)
	require.Equal(t, codes.Unavailable, status.Code(<-ended))
}

// The bounds of connections hold for the clients of other doors together with those of gRPC.
func TestRelayedConnIsBounded(t *testing.T) {
	registry := stuckRegistry{&fakeRegistry{entries: []runtime.GraphEntry{{Graph: &graph.Graph{Name: "g"}}}}, make(chan struct{}), make(chan struct{})}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.Registry, o.MaxOpenCalls, o.MaxIncoming, o.MaxMessageBytes = registry, 1, 64<<10, 128<<10
	})
	direct := graphdv1.NewRegistryServiceClient(connectRelayed(t, c))
	large := &graphdv1.GetGraphRequest{Graph: "g", Version: strings.Repeat("v", 60<<10)}
	_, err := direct.GetGraph(t.Context(), large)
	requireLimit(t, err, "max-incoming")

	answered := make(chan error, 1)
	go func() {
		_, err := direct.GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "g"})
		answered <- err
	}()
	<-registry.stuck
	_, err = direct.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	requireLimit(t, err, "max-open-calls")
	_, err = c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	requireLimit(t, err, "max-open-calls")
	close(registry.release)
	require.NoError(t, <-answered)
	require.Eventually(t, func() bool { // the end of a call is counted a moment later
		_, err := direct.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
		return err == nil
	}, time.Minute, time.Millisecond)
}

func requireLimit(t *testing.T, err error, name string) {
	t.Helper()
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			require.Equal(t, name, info.GetMetadata()["limit"])
			return
		}
	}
	require.Fail(t, "the error has no details", "%v", err)
}

// A client of another door gets no answer that is larger than gRPC would send.
func TestRelayedConnBoundsAnswers(t *testing.T) {
	registry := &fakeRegistry{entries: []runtime.GraphEntry{{Graph: &graph.Graph{Name: "g"}, Versions: []string{strings.Repeat("v", 200<<10)}}}}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Registry, o.MaxMessageBytes = registry, 100<<10 })
	for name, conn := range map[string]grpc.ClientConnInterface{"gRPC": c.conn, "relayed": connectRelayed(t, c)} {
		_, err := graphdv1.NewRegistryServiceClient(conn).GetGraph(t.Context(), &graphdv1.GetGraphRequest{Graph: "g"})
		require.Equal(t, codes.ResourceExhausted, status.Code(err), "%s: %v", name, err)
	}
}

// stuckRegistry does not answer before it is released.
type stuckRegistry struct {
	*fakeRegistry

	stuck, release chan struct{}
}

func (r stuckRegistry) GetGraph(ctx context.Context, name, version string) (runtime.GraphEntry, error) {
	close(r.stuck)
	<-r.release
	return r.fakeRegistry.GetGraph(ctx, name, version)
}
