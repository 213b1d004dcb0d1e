package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/stream"
)

// stalledStream is a client that reads nothing.
type stalledStream struct {
	grpc.ServerStream

	ctx context.Context
}

func (s stalledStream) Context() context.Context { return s.ctx }

func (stalledStream) SetHeader(metadata.MD) error { return nil }

func (s stalledStream) SendMsg(any) error {
	<-s.ctx.Done()
	return s.ctx.Err()
}

// quietThread is an engine with one thread in which nothing happens.
type quietThread struct {
	Engine

	cancelled []runtime.CancelRequest
}

func (*quietThread) Thread(context.Context, string) (checkpoint.Head, error) {
	return checkpoint.Head{Thread: "t1", LogID: "L", Run: "r1", FirstEvent: 1}, nil
}

func (*quietThread) Run(context.Context, *runtime.CallMemory, string, string) (checkpoint.Run, error) {
	return checkpoint.Run{ID: "r1", Thread: "t1", State: checkpoint.RunRunning, FirstEvent: 1}, nil
}

func (*quietThread) State(context.Context, runtime.StateRequest) (runtime.Snapshot, error) {
	return runtime.Snapshot{}, nil
}

func (*quietThread) Interrupts(context.Context, *runtime.CallMemory, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return []checkpoint.Interrupt{{ID: "q1", State: checkpoint.InterruptOpen}}, nil
}

func (*quietThread) CurrentTime() time.Time { return time.Now() }

func (*quietThread) LatestInterruptChange(context.Context) (uint64, error) { return 0, nil }

func (q *quietThread) Start(ctx context.Context, _ runtime.StartRequest) (*runtime.Started, error) {
	head, _ := q.Thread(ctx, "t1")
	run, _ := q.Run(ctx, nil, "t1", "r1")
	return &runtime.Started{Run: run, Head: head}, nil
}

func (q *quietThread) Cancel(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	q.cancelled = append(q.cancelled, req)
	return q.Run(ctx, nil, "t1", "r1")
}

// quietFollower has no events.
type quietFollower struct{}

func (quietFollower) CheckCursor(context.Context) error { return nil }

func (quietFollower) Next(ctx context.Context) ([]checkpoint.Event, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (quietFollower) Rewind(uint64, uint32) {}

func (quietFollower) RecentEphemeral() []checkpoint.Event { return nil }

func (quietFollower) Close() {}

func newQuietService(e Engine) *service {
	follow := func(runtime.FollowRequest) stream.Follower { return quietFollower{} }
	streams := stream.NewRegistry(stream.Settings{
		HeartbeatInterval: 15 * time.Second, StallTimeout: 30 * time.Second, MaxMessageBytes: 8 << 20, MaxOpening: 1,
	})
	return &service{
		engine: e, follow: follow, streams: streams, maxMessageBytes: 8 << 20,
		events: stream.NewStreamer(streams, stream.Sources{Engine: e, Follow: follow, Log: zap.NewNop(), Now: time.Now}),
	}
}

// Clients that do not read do not prevent other watches from beginning.
func TestSlowReadersLetOthersBegin(t *testing.T) {
	for name, slow := range map[string]func(context.Context, *service) error{
		"WatchInterrupts": func(ctx context.Context, s *service) error {
			return (&interruptService{service: s}).WatchInterrupts(&graphdv1.WatchInterruptsRequest{},
				&grpc.GenericServerStream[graphdv1.WatchInterruptsRequest, graphdv1.InterruptChange]{ServerStream: stalledStream{ctx: ctx}})
		},
		"Watch": func(ctx context.Context, s *service) error {
			return (&graphService{service: s}).Watch(&graphdv1.WatchRequest{ThreadId: "t1", SnapshotFirst: true, Follow: true},
				&grpc.GenericServerStream[graphdv1.WatchRequest, graphdv1.Event]{ServerStream: stalledStream{ctx: ctx}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				s := newQuietService(&quietThread{})
				done := make(chan error)
				go func() { done <- slow(ctx, s) }()
				synctest.Wait()
				select {
				case err := <-done:
					require.Fail(t, "the slow client's watch has ended", err)
				default:
				}
				begun := time.Now()
				release, err := s.streams.AcquireOpeningSlot(t.Context())
				require.NoError(t, err)
				require.Equal(t, begun, time.Now(), "the slow client has its turn no more")
				release()
				leave()
				require.ErrorIs(t, <-done, context.Canceled)
			})
		})
	}
}

// A run is cancelled when its client leaves, if that was asked for.
func TestStreamKnowsWhatItsClientWantsWhenItLeaves(t *testing.T) {
	for policy, want := range map[graphdv1.DisconnectPolicy]int{
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CONTINUE: 0,
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL:   1,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			e := &quietThread{}
			s := &graphService{service: newQuietService(e)}
			done := make(chan error)
			go func() {
				done <- s.Stream(&graphdv1.StreamRequest{Run: &graphdv1.RunSpec{ThreadId: "t1"}, OnDisconnect: policy},
					&grpc.GenericServerStream[graphdv1.StreamRequest, graphdv1.Event]{ServerStream: stalledStream{ctx: ctx}})
			}()
			synctest.Wait()
			leave()
			require.ErrorIs(t, <-done, context.Canceled)
			require.Len(t, e.cancelled, want)
		})
	}
}

// A server that drains has no further streams.
func TestDrainingServerRefusesStreams(t *testing.T) {
	s := &graphService{service: newQuietService(&quietThread{})}
	s.streams.DrainStreams()
	draining := &runtime.Error{Reason: runtime.ReasonServerDraining}
	client := stalledStream{ctx: t.Context()}
	require.ErrorIs(t, s.Watch(&graphdv1.WatchRequest{ThreadId: "t1"},
		&grpc.GenericServerStream[graphdv1.WatchRequest, graphdv1.Event]{ServerStream: client}), draining)
	require.ErrorIs(t, s.Stream(&graphdv1.StreamRequest{Run: &graphdv1.RunSpec{ThreadId: "t1"}},
		&grpc.GenericServerStream[graphdv1.StreamRequest, graphdv1.Event]{ServerStream: client}), draining)
}
