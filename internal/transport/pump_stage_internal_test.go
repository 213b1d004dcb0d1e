package transport

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
)

// thread is a runtime with one thread whose log the test writes.
type thread struct {
	Engine // calls the test does not expect

	mu        sync.Mutex
	head      checkpoint.Head
	run       checkpoint.Run
	log       []checkpoint.Event
	grown     chan struct{}
	broken    error
	cancelled []runtime.CancelRequest
	snapshot  runtime.Snapshot
	values    payload.JSON
	missing   error // of StateAt
}

func newThread() *thread {
	return &thread{
		head:  checkpoint.Head{Thread: "t1", LogID: "L", Run: "r1", FirstEvent: 1},
		run:   checkpoint.Run{ID: "r1", Thread: "t1", State: checkpoint.RunRunning, FirstEvent: 1},
		grown: make(chan struct{}),
	}
}

func (th *thread) happen(events ...checkpoint.Event) {
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, e := range events {
		if !e.Ephemeral {
			th.head.LastEvent++
		}
		e.Seq = th.head.LastEvent
		if e.Run == "" {
			e.Run = "r1"
		}
		if e.Run == "r1" {
			th.run.LastEvent = e.Seq
			if e.Kind == checkpoint.EventRunState {
				th.run.State = e.State
			}
		}
		th.log = append(th.log, e)
	}
	close(th.grown)
	th.grown = make(chan struct{})
}

func (th *thread) fail(err error) {
	th.mu.Lock()
	th.broken = err
	th.mu.Unlock()
	th.happen()
}

func (th *thread) Thread(context.Context, string) (checkpoint.Head, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.head, nil
}

func (th *thread) Run(context.Context, string, string) (checkpoint.Run, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.run, nil
}

func (th *thread) Start(context.Context, runtime.StartRequest) (runtime.Started, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return runtime.Started{Run: th.run, Head: th.head, Attached: th.run.LastEvent > 0}, nil
}

func (th *thread) Cancel(_ context.Context, req runtime.CancelRequest) (checkpoint.Run, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.cancelled = append(th.cancelled, req)
	return th.run, nil
}

func (th *thread) OpenInterruptIDs(ctx context.Context, _, _ string, _ int) ([]string, error) {
	open, err := th.Interrupts(ctx, checkpoint.InterruptQuery{})
	var ids []string
	for i := range open {
		ids = append(ids, open[i].ID)
	}
	return ids, err
}

func (th *thread) Interrupts(context.Context, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return []checkpoint.Interrupt{{ID: "q1", State: checkpoint.InterruptOpen}}, nil
}

func (th *thread) State(context.Context, runtime.StateRequest) (runtime.Snapshot, error) {
	return th.snapshot, nil
}

func (th *thread) StateAt(context.Context, string, string, string) (payload.JSON, error) {
	return th.values, th.missing
}

type logReader struct {
	th *thread
	at int
}

func (th *thread) follow(req runtime.FollowRequest) Follower {
	th.mu.Lock()
	defer th.mu.Unlock()
	r := &logReader{th: th}
	for r.at < len(th.log) && th.log[r.at].Seq <= req.After {
		r.at++
	}
	return r
}

func (r *logReader) Unread(after uint64, _ uint32) {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	for r.at > 0 && r.th.log[r.at-1].Seq > after {
		r.at--
	}
}

func (r *logReader) Check(context.Context) error { return nil }

func (r *logReader) Next(ctx context.Context) ([]checkpoint.Event, error) {
	for {
		r.th.mu.Lock()
		events, grown, broken := r.th.log[r.at:], r.th.grown, r.th.broken
		r.th.mu.Unlock()
		r.at += len(events)
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

// wire is a client's end of a stream. It takes a message whenever it has a
// token to read one; unlimited takes all.
type wire struct {
	grpc.ServerStream

	ctx       context.Context
	tokens    chan struct{}
	unlimited bool
	mu        sync.Mutex
	got       []*graphdv1.Event
	header    metadata.MD
}

func (w *wire) Context() context.Context { return w.ctx }

func (w *wire) SetHeader(md metadata.MD) error {
	if w.ctx.Err() != nil {
		return errors.New("SendHeader called multiple times") // as gRPC says it
	}
	w.header = md
	return nil
}

func (w *wire) SendMsg(m any) error {
	f, ok := m.(*frame)
	if !ok {
		return fmt.Errorf("%T is not encoded", m)
	}
	e := &graphdv1.Event{}
	if err := proto.Unmarshal(f.bytes, e); err != nil {
		return err
	}
	return w.Send(e)
}

func (w *wire) Send(e *graphdv1.Event) error {
	if !w.unlimited {
		select {
		case <-w.tokens:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, e)
	return nil
}

func (w *wire) events() []*graphdv1.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*graphdv1.Event(nil), w.got...)
}

// session is one open stream under test.
type session struct {
	*wire

	service *graphService
	leave   context.CancelFunc
	done    chan struct{}
	err     error
}

func newGraphService(th *thread) *graphService {
	return &graphService{service: &service{pump: &pump{
		now: time.Now,
		streams: &streams{
			heartbeat: 15 * time.Second, stall: 30 * time.Second, maxBytes: 8 << 20, draining: make(chan struct{}),
		},
		engine: th, follow: th.follow, log: zap.NewNop(), census: &counted{},
	}}}
}

// counted is a Census for tests.
type counted struct{ opened, closed, slow int }

func (c *counted) FollowerOpened() { c.opened++ }

func (c *counted) FollowerClosed(slow bool) {
	c.closed++
	if slow {
		c.slow++
	}
}

func open(t *testing.T, th *thread, call func(*graphService, eventStream) error) *session {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	s := &session{
		wire:    &wire{ctx: ctx, unlimited: true, tokens: make(chan struct{}, 100)},
		service: newGraphService(th), leave: leave, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.err = call(s.service, s.wire)
	}()
	return s
}

func watch(req *graphdv1.WatchRequest) func(*graphService, eventStream) error {
	req.ThreadId = "t1"
	return func(s *graphService, stream eventStream) error { return s.Watch(req, stream) }
}

func stream(req *graphdv1.StreamRequest) func(*graphService, eventStream) error {
	req.Run = &graphdv1.RunSpec{ThreadId: "t1"}
	return func(s *graphService, stream eventStream) error { return s.Stream(req, stream) }
}

// last returns the newest message.
func (s *session) last(t *testing.T) *graphdv1.Event {
	t.Helper()
	synctest.Wait()
	events := s.events()
	require.NotEmpty(t, events)
	return events[len(events)-1]
}

// ended waits for the end and returns what the stream said of it.
func (s *session) ended(t *testing.T) *graphdv1.EndOfStream {
	t.Helper()
	<-s.done
	require.NoError(t, s.err)
	end := s.last(t).GetEnd()
	require.NotNil(t, end)
	return end
}

// later lets virtual time pass.
func later(d time.Duration) { <-time.NewTimer(d).C }

func state(s checkpoint.RunState) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventRunState, State: s}
}

func update(node string) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventUpdate, Node: node, Value: `{"a":9007199254740993}`}
}
