package transport_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/transport"
)

func TestDrainEndsStreamsAndLetsHealthKnowFirst(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e)
	health := healthpb.NewHealthClient(c.conn)
	watched, err := health.Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "graphd.v1.GraphService"})
	require.NoError(t, err)
	first, err := watched.Recv()
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, first.GetStatus())

	stream, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventUpdate, Node: "a", Value: "{}"})
	_, err = stream.Recv()
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := c.WaitRun(t.Context(), &graphdv1.WaitRunRequest{ThreadId: "t1", RunId: "run-1"})
		waiting <- err
	}()

	require.NoError(t, c.server.Drain(t.Context()))
	next, err := watched.Recv()
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, next.GetStatus())
	for err == nil {
		_, err = watched.Recv()
	}
	require.ErrorIs(t, err, io.EOF)

	last, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, graphdv1.EndOfStream_CAUSE_DRAINING, last.GetEnd().GetCause())
	require.Equal(t, uint64(1), last.GetEnd().GetResumeAt().GetSequence())
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, codes.Unavailable, status.Code(<-waiting))
}

// Drain cuts a call that does not end by itself when its time is up.
func TestDrainHasADeadline(t *testing.T) {
	c := startServer(t, newFakeEngine())
	stream, err := reflectionpb.NewServerReflectionClient(c.conn).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}))
	_, err = stream.Recv()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.server.Drain(ctx), context.DeadlineExceeded)
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestDrainWithoutStreamsIsQuick(t *testing.T) {
	c := startServer(t, newFakeEngine())
	_, err := c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
	require.NoError(t, c.server.Drain(t.Context()))
	require.NoError(t, c.server.Drain(t.Context()))
}

func TestHealthOfEveryService(t *testing.T) {
	c := startServer(t, newFakeEngine())
	health := healthpb.NewHealthClient(c.conn)
	for _, name := range []string{
		"", "graphd.v1.GraphService", "graphd.v1.ThreadService", "graphd.v1.InterruptService", "graphd.v1.RegistryService",
	} {
		for _, serving := range []bool{true, false, true} {
			c.server.SetServing(serving)
			got, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
			require.NoError(t, err)
			require.Equal(t, serving, got.GetStatus() == healthpb.HealthCheckResponse_SERVING, name)
		}
	}
}

func TestReflectionIsASwitch(t *testing.T) {
	ask := func(c testClient) error {
		stream, err := reflectionpb.NewServerReflectionClient(c.conn).ServerReflectionInfo(t.Context())
		require.NoError(t, err)
		err = stream.Send(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "graphd.v1.Event"},
		})
		if err == nil { // otherwise Recv says why the stream ended already
			require.NoError(t, stream.CloseSend())
		}
		answer, err := stream.Recv()
		if err == nil {
			require.NotEmpty(t, answer.GetFileDescriptorResponse().GetFileDescriptorProto())
		}
		return err
	}
	require.NoError(t, ask(startServer(t, newFakeEngine())))
	err := ask(startServer(t, newFakeEngine(), func(o *transport.Options) { o.NoReflection = true }))
	require.Equal(t, codes.Unimplemented, status.Code(err))
}

// A client that never reads costs the memory of one message, not of the log: its
// stream is cut and the server releases it.
func TestSilentClientOverTheWire(t *testing.T) {
	e := newFakeEngine()
	c := startServer(t, e, func(o *transport.Options) { o.StallTimeout = 20 * time.Millisecond; o.MaxStreams = 1 })
	stream, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	large := payload.Quote(strings.Repeat("x", 256<<10))
	for range 8 {
		e.appendEvents(checkpoint.Event{Kind: checkpoint.EventUpdate, Node: "a", Value: large})
	}
	require.Eventually(t, func() bool {
		other, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1"})
		if err != nil {
			return false
		}
		_, err = other.Recv()
		return err == nil
	}, time.Minute, 10*time.Millisecond, "the stream still counts")
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, "SLOW_CONSUMER", requireErrorInfo(t, err).GetReason())
}

func TestClientsMayChooseGzip(t *testing.T) {
	e := newFakeEngine()
	e.state.Values = payload.Quote(strings.Repeat("x", 1<<20))
	c := startServer(t, e)
	state, err := c.GetState(t.Context(), &graphdv1.GetStateRequest{ThreadId: "t1"}, grpc.UseCompressor(gzip.Name))
	require.NoError(t, err)
	require.Len(t, state.GetValues().GetJson(), 1<<20+2)
}

func TestCallsAreCountedAndLogged(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	metrics := prometheus.NewRegistry()
	e := newFakeEngine()
	c := startServer(t, e, func(o *transport.Options) { o.Log = zap.New(core); o.Metrics = metrics })
	_, err := c.StartRun(t.Context(), &graphdv1.StartRunRequest{Run: &graphdv1.RunSpec{CreateThread: true}})
	require.NoError(t, err)
	_, err = c.GetRun(t.Context(), &graphdv1.GetRunRequest{ThreadId: "t1", RunId: "no id"})
	require.Error(t, err)

	stream, err := c.Stream(t.Context(), &graphdv1.StreamRequest{Run: &graphdv1.RunSpec{CreateThread: true}})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventRunState, Run: "run-1", State: checkpoint.RunSucceeded})
	for err == nil {
		_, err = stream.Recv()
	}
	require.ErrorIs(t, err, io.EOF)

	families, err := metrics.Gather()
	require.NoError(t, err)
	counted := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				if n := l.GetName(); n == "grpc_method" || n == "grpc_code" || n == "grpc_type" {
					key += " " + l.GetValue()
				}
			}
			counted[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	for key, want := range map[string]float64{
		"grpc_server_started_total StartRun unary":                1,
		"grpc_server_started_total Stream server_stream":          1,
		"grpc_server_handled_total OK StartRun unary":             1,
		"grpc_server_handled_total InvalidArgument GetRun unary":  1,
		"grpc_server_handled_total OK Stream server_stream":       1,
		"grpc_server_handled_total Internal Stream server_stream": 0,
		"grpc_server_msg_received_total GetRun unary":             1,
		"grpc_server_msg_received_total Stream server_stream":     1,
		"grpc_server_msg_sent_total StartRun unary":               1,
		"grpc_server_msg_sent_total GetRun unary":                 0,
		"grpc_server_msg_sent_total Stream server_stream":         3, // opened, the state, the end
		"grpc_server_handling_seconds GetRun unary":               1,
		"grpc_server_handling_seconds Stream server_stream":       1,
		"grpc_server_started_total WatchInterrupts server_stream": 0,
	} {
		got, ok := counted[key]
		require.True(t, ok, "%s of %v", key, counted)
		require.InDelta(t, want, got, 0, key)
	}

	finished := logs.FilterMessage("finished call").All()
	require.Len(t, finished, 3)
	fields := finished[0].ContextMap()
	require.Equal(t, "t1", fields["thread"])
	require.Equal(t, "run-1", fields["run"])
	require.Equal(t, "StartRun", fields["grpc.method"])
	require.Equal(t, "unary", fields["grpc.method_type"])
	require.Equal(t, "graphd.v1.GraphService", fields["grpc.service"])
	require.Equal(t, "OK", fields["grpc.code"])
	require.NotEmpty(t, fields["request_id"])
	require.NotEmpty(t, fields["peer.address"])
	require.NotEmpty(t, fields["grpc.time_ms"])
	require.Equal(t, "InvalidArgument", finished[1].ContextMap()["grpc.code"])
	require.Contains(t, finished[1].ContextMap()["grpc.error"], "run_id")
	require.Equal(t, "server_stream", finished[2].ContextMap()["grpc.method_type"])

	_, err = transport.NewServer(transport.Options{
		Engine: e, Follow: e.followThread, FollowInterrupts: e.followInterrupts, Registry: &fakeRegistry{}, Assistants: &fakeAssistants{}, Items: &fakeItems{}, RunWebhooks: &fakeRunWebhooks{}, Crons: &fakeCrons{}, Metrics: metrics,
	})
	require.ErrorContains(t, err, "register metrics")
}

// A server that closes old connections ends their streams before, and clients
// continue on another connection.
func TestOldConnectionsAreLeftInOrder(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.MaxConnectionAge, o.ConnectionGrace = 100*time.Millisecond, 10*time.Second
	})
	stream, err := c.Watch(t.Context(), &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	var last *graphdv1.Event
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		last = e
	}
	require.Equal(t, graphdv1.EndOfStream_CAUSE_DRAINING, last.GetEnd().GetCause())
	_, err = c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
}

// A connection without calls is closed, so that idle connections do not occupy
// places; a stream is a call. The client connects again for its next call.
func TestIdleConnectionsAreClosed(t *testing.T) {
	c := startServer(t, newFakeEngine(), func(o *transport.Options) {
		o.ConnectionIdle, o.Heartbeat = 100*time.Millisecond, 50*time.Millisecond
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := c.Watch(ctx, &graphdv1.WatchRequest{ThreadId: "t1", Follow: true})
	require.NoError(t, err)
	for range 10 {
		_, err = stream.Recv()
		require.NoError(t, err)
	}
	require.Equal(t, connectivity.Ready, c.conn.GetState())
	cancel()
	limit, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	require.True(t, c.conn.WaitForStateChange(limit, connectivity.Ready))
	_, err = c.GetServerInfo(t.Context(), &graphdv1.GetServerInfoRequest{})
	require.NoError(t, err)
}

func TestProbesThatGoWellAreNotLogged(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.Log = zap.New(core) })
	_, err := healthpb.NewHealthClient(c.conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = c.GetThread(t.Context(), &graphdv1.GetThreadRequest{ThreadId: "t1"})
	require.NoError(t, err)
	finished := logs.FilterMessage("finished call").All()
	require.Len(t, finished, 1)
	require.Equal(t, "GetThread", finished[0].ContextMap()["grpc.method"])
}

func TestAnUpdateAsTheEndNeedsNoValues(t *testing.T) {
	c := startServer(t, newFakeEngine())
	for _, as := range []string{"__end__", "__copy__"} {
		_, err := c.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{ThreadId: "t1", AsNode: as})
		require.NoError(t, err)
		_, err = c.BulkUpdateState(t.Context(), &graphdv1.BulkUpdateStateRequest{
			ThreadId: "t1", Supersteps: []*graphdv1.StateSuperstep{{Updates: []*graphdv1.StateUpdate{{AsNode: as}}}},
		})
		require.NoError(t, err)
	}
	_, err := c.UpdateState(t.Context(), &graphdv1.UpdateStateRequest{ThreadId: "t1", AsNode: "n"})
	require.Equal(t, "INVALID_FIELD", requireErrorInfo(t, err).GetReason())
}
