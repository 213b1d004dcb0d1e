package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/transport"
)

// closedStreams is a stream.Metrics that reports how streams were closed.
type closedStreams chan bool

func (closedStreams) FollowerOpened()            {}
func (c closedStreams) FollowerClosed(slow bool) { c <- slow }

// TestServerDoesNotWaitForAClientThatReadsNothing has a client that reads no byte
// of its stream. The server still ends a short stream, and cuts a long one after a
// while.
func TestServerDoesNotWaitForAClientThatReadsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		stall time.Duration
		slow  bool
	}{
		"a stream that gRPC takes at once": {bytes: 30 << 10, stall: time.Hour},
		"a stream that it does not take":   {bytes: 300 << 10, stall: 50 * time.Millisecond, slow: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			for range c.bytes >> 10 {
				e.appendEvents(checkpoint.Event{
					Kind: checkpoint.EventUpdate, Node: "a", Value: payload.Quote(strings.Repeat("x", 1<<10)),
				})
			}
			closed := make(closedStreams, 1)
			s, err := transport.NewServer(transport.Options{
				Engine: e, Follow: e.followThread, FollowInterrupts: e.followInterrupts, Registry: &fakeRegistry{}, Assistants: &fakeAssistants{}, Items: &fakeItems{}, RunWebhooks: &fakeRunWebhooks{}, Crons: &fakeCrons{},
				StreamMetrics: closed, StallTimeout: c.stall,
			})
			require.NoError(t, err)
			l := bufconn.Listen(1 << 20)
			go func() { _ = s.Serve(l) }()
			defer s.Stop()
			conn, err := l.DialContext(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()

			callWithoutWindow(t, conn, "/graphd.v1.GraphService/Watch", &graphdv1.WatchRequest{
				ThreadId: "t1", Start: &graphdv1.WatchRequest_Beginning{},
			})
			select {
			case slow := <-closed:
				require.Equal(t, c.slow, slow)
			case <-time.NewTimer(time.Minute).C:
				t.Fatal("the stream was never closed")
			}
		})
	}
}

// TestThoseWhoReadNothingDoNotKeepOthersWaiting has many clients that read nothing
// of a log that is larger than the limit for all of them.
func TestThoseWhoReadNothingDoNotKeepOthersWaiting(t *testing.T) {
	e := newFakeEngine()
	e.isShared = true
	const events = 40
	for range events {
		e.appendEvents(checkpoint.Event{
			Kind: checkpoint.EventUpdate, Node: "a", Value: payload.Quote(strings.Repeat("x", 100<<10)),
		})
	}
	s, err := transport.NewServer(transport.Options{
		Engine: e, Follow: e.followThread, FollowInterrupts: e.followInterrupts, Registry: &fakeRegistry{}, Assistants: &fakeAssistants{}, Items: &fakeItems{}, RunWebhooks: &fakeRunWebhooks{}, Crons: &fakeCrons{},
		StallTimeout: time.Hour, MaxUnread: 1 << 20, UnreadPatience: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	l := bufconn.Listen(1 << 20)
	go func() { _ = s.Serve(l) }()
	defer s.Stop()
	for range 50 {
		conn, err := l.DialContext(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		callWithoutWindow(t, conn, "/graphd.v1.GraphService/Watch", &graphdv1.WatchRequest{
			ThreadId: "t1", Start: &graphdv1.WatchRequest_Beginning{},
		})
	}
	conn, err := grpc.NewClient("passthrough:test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	stream, err := graphdv1.NewGraphServiceClient(conn).Watch(t.Context(), &graphdv1.WatchRequest{
		ThreadId: "t1", Start: &graphdv1.WatchRequest_Beginning{},
	})
	require.NoError(t, err)
	for seen := 0; ; {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			require.Equal(t, events, seen)
			return
		}
		require.NoError(t, err)
		if m.GetUpdate() != nil {
			seen++
			require.EqualValues(t, seen, m.GetCursor().GetSequence())
		}
	}
}

// callWithoutWindow makes a call and lets the server send nothing but headers.
func callWithoutWindow(t *testing.T, conn net.Conn, name string, request proto.Message) {
	t.Helper()
	_, err := conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, err)
	framer := http2.NewFramer(conn, conn)
	require.NoError(t, framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	go func() { // reads and ignores all frames
		for {
			if _, err := framer.ReadFrame(); err != nil {
				return
			}
		}
	}()
	var block strings.Builder
	headers := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", name},
		{":authority", "test"},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		require.NoError(t, headers.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true,
	}))
	body, err := proto.Marshal(request)
	require.NoError(t, err)
	message := append([]byte{0, 0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	require.NoError(t, framer.WriteData(1, true, message))
}
