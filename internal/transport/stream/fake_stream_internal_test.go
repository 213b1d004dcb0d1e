package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// fakeThread is a runtime with one thread whose log the test writes.
type fakeThread struct {
	recent []checkpoint.Event // ephemeral events from before all followers
	Engine                    // calls the test does not expect

	mu        sync.Mutex
	head      checkpoint.Head
	run       checkpoint.Run
	log       []checkpoint.Event
	logGrown  chan struct{}
	readErr   error
	cancelled []runtime.CancelRequest
	snapshot  runtime.Snapshot
	values    payload.JSON
	stateErr  error // of ValuesAt
}

func newFakeThread() *fakeThread {
	return &fakeThread{
		head:     checkpoint.Head{Thread: "t1", LogID: "L", Run: "r1", FirstEvent: 1},
		run:      checkpoint.Run{ID: "r1", Thread: "t1", State: checkpoint.RunRunning, FirstEvent: 1},
		logGrown: make(chan struct{}),
	}
}

func (f *fakeThread) appendEvents(events ...checkpoint.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if !e.Ephemeral {
			f.head.LastEvent++
		}
		e.Seq = f.head.LastEvent
		if e.Run == "" {
			e.Run = "r1"
		}
		if e.Run == "r1" {
			f.run.LastEvent = e.Seq
			if e.Kind == checkpoint.EventRunState {
				f.run.State = e.State
			}
		}
		f.log = append(f.log, e)
	}
	close(f.logGrown)
	f.logGrown = make(chan struct{})
}

func (f *fakeThread) failReads(err error) {
	f.mu.Lock()
	f.readErr = err
	f.mu.Unlock()
	f.appendEvents()
}

func (f *fakeThread) Thread(context.Context, string) (checkpoint.Head, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head, nil
}

func (f *fakeThread) Run(context.Context, *runtime.CallMemory, string, string) (checkpoint.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run, nil
}

func (f *fakeThread) startRun() *runtime.Started {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &runtime.Started{Run: f.run, Head: f.head, IsAttached: f.run.LastEvent > 0}
}

func (f *fakeThread) Cancel(_ context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancelled = append(f.cancelled, req)
	return f.run, nil
}

func (f *fakeThread) OpenInterruptIDs(context.Context, string, int) ([]string, error) {
	return []string{"q1"}, nil
}

func (f *fakeThread) OpenInterrupts(context.Context, *runtime.CallMemory, string, int) ([]checkpoint.Interrupt, bool, error) {
	return []checkpoint.Interrupt{{ID: "q1", State: checkpoint.InterruptOpen}}, true, nil
}

func (f *fakeThread) OutputOfWaiting(context.Context, *runtime.CallMemory, *checkpoint.Run) (payload.JSON, error) {
	return f.values, f.stateErr
}

func (f *fakeThread) State(context.Context, runtime.StateRequest) (runtime.Snapshot, error) {
	return f.snapshot, nil
}

func (f *fakeThread) ValuesAt(context.Context, *runtime.CallMemory, string, string, string) (payload.JSON, error) {
	return f.values, f.stateErr
}

type logReader struct {
	thread   *fakeThread
	position int
}

func (f *fakeThread) followThread(req runtime.FollowRequest) Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &logReader{thread: f}
	for r.position < len(f.log) && f.log[r.position].Seq <= req.After {
		r.position++
	}
	return r
}

func (r *logReader) Rewind(after uint64, _ uint32) {
	r.thread.mu.Lock()
	defer r.thread.mu.Unlock()
	for r.position > 0 && r.thread.log[r.position-1].Seq > after {
		r.position--
	}
}

func (r *logReader) RecentEphemeral() []checkpoint.Event { return r.thread.recent }

func (r *logReader) CheckCursor(context.Context) error { return nil }

func (r *logReader) Next(ctx context.Context) ([]checkpoint.Event, error) {
	for {
		r.thread.mu.Lock()
		events, grown, broken := r.thread.log[r.position:], r.thread.logGrown, r.thread.readErr
		r.thread.mu.Unlock()
		r.position += len(events)
		if len(events) > 0 {
			return events, nil
		}
		if broken != nil {
			return nil, broken
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (*logReader) Close() {}

// fakeStream is the client's end of a stream. It takes a message for each permit;
// with isUnlimited it takes all.
type fakeStream struct {
	grpc.ServerStream

	ctx         context.Context
	readPermits chan struct{}
	isUnlimited bool
	mu          sync.Mutex
	received    []*graphdv1.Event
	header      metadata.MD
}

func (fs *fakeStream) Context() context.Context { return fs.ctx }

func (fs *fakeStream) SetHeader(md metadata.MD) error {
	if fs.ctx.Err() != nil {
		return errors.New("SendHeader called multiple times") // as gRPC says it
	}
	fs.header = md
	return nil
}

func (fs *fakeStream) SendMsg(m any) error {
	f, ok := m.(*flow.EncodedMessage)
	if !ok {
		return fmt.Errorf("%T is not encoded", m)
	}
	e := &graphdv1.Event{}
	if err := proto.Unmarshal(f.Bytes, e); err != nil {
		return err
	}
	return fs.Send(e)
}

func (fs *fakeStream) Send(e *graphdv1.Event) error {
	if !fs.isUnlimited {
		select {
		case <-fs.readPermits:
		case <-fs.ctx.Done():
			return fs.ctx.Err()
		}
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.received = append(fs.received, e)
	return nil
}

func (fs *fakeStream) receivedEvents() []*graphdv1.Event {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return append([]*graphdv1.Event(nil), fs.received...)
}

// testStream is one open stream under test.
type testStream struct {
	*fakeStream

	streamer *Streamer
	counts   *streamCounts
	leave    context.CancelFunc
	done     chan struct{}
	err      error
}

func newTestStreamer(th *fakeThread, counts *streamCounts) *Streamer {
	return NewStreamer(NewRegistry(Settings{
		HeartbeatInterval: 15 * time.Second, StallTimeout: 30 * time.Second, MaxMessageBytes: 8 << 20,
	}), Sources{Engine: th, Follow: th.followThread, Log: zap.NewNop(), Metrics: counts, Now: time.Now})
}

// streamCounts is a Metrics for tests.
type streamCounts struct{ opened, closed, slow int }

func (c *streamCounts) FollowerOpened() { c.opened++ }

func (c *streamCounts) FollowerClosed(slow bool) {
	c.closed++
	if slow {
		c.slow++
	}
}

// streamCall serves a stream as a service does.
type streamCall func(*Streamer, EventStream) error

func openStream(t *testing.T, th *fakeThread, call streamCall) *testStream {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	counts := &streamCounts{}
	s := &testStream{
		fakeStream: &fakeStream{ctx: ctx, isUnlimited: true, readPermits: make(chan struct{}, 100)},
		streamer:   newTestStreamer(th, counts), counts: counts, leave: leave, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.err = call(s.streamer, s.fakeStream)
	}()
	return s
}

func selectEvents(f *graphdv1.EventFilter) wire.EventSelection {
	return wire.EventSelectionFromProto(wire.NewValidator(payload.Limits{}, "default"), f)
}

func newWatchCall(req *graphdv1.WatchRequest) streamCall {
	return func(p *Streamer, stream EventStream) error {
		if err := p.AddStream(stream.Context()); err != nil {
			return err
		}
		defer p.RemoveStream()
		begun, err := p.AcquireOpeningSlot(stream.Context())
		if err != nil {
			return err
		}
		defer begun()
		sub, err := p.NewWatchSubscription(stream.Context(), "t1", req.GetRunId(), req)
		if err != nil {
			return err
		}
		sub.EventSelection, sub.OnBegun = selectEvents(req.GetFilter()), begun
		return p.ServeStream(stream, sub)
	}
}

// newStartCall follows the run of a thread as if the call had started it.
func newStartCall(th *fakeThread, policy graphdv1.DisconnectPolicy) streamCall {
	return func(p *Streamer, stream EventStream) error {
		if err := p.AddStream(stream.Context()); err != nil {
			return err
		}
		defer p.RemoveStream()
		early := p.NewEarlySubscription(selectEvents(nil))
		defer early.CloseFollower()
		return p.ServeStream(stream, early.ToSubscription(th.startRun(), policy))
	}
}

// lastEvent returns the newest message.
func (s *testStream) lastEvent(t *testing.T) *graphdv1.Event {
	t.Helper()
	synctest.Wait()
	events := s.receivedEvents()
	require.NotEmpty(t, events)
	return events[len(events)-1]
}

// waitForEnd waits for the end and returns the end message.
func (s *testStream) waitForEnd(t *testing.T) *graphdv1.EndOfStream {
	t.Helper()
	<-s.done
	require.NoError(t, s.err)
	end := s.lastEvent(t).GetEnd()
	require.NotNil(t, end)
	return end
}

// sleepVirtual lets virtual time pass.
func sleepVirtual(d time.Duration) { <-time.NewTimer(d).C }

func newRunStateEvent(s checkpoint.RunState) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventRunState, State: s}
}

func newUpdateEvent(node string) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventUpdate, Node: node, Value: `{"a":9007199254740993}`}
}
