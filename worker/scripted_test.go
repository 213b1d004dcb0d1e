package worker_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/worker"
)

// scriptedServer is a server of which a test says every word.
type scriptedServer struct {
	graphdv1.UnimplementedWorkerServiceServer

	welcome  func(*graphdv1.Hello) *graphdv1.Welcome
	complete func(*graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error)
	memo     func(*graphdv1.RecordMemoRequest) (*graphdv1.RecordMemoResponse, error)

	hellos chan *graphdv1.Hello
	heard  chan *graphdv1.ConnectRequest
	say    chan *graphdv1.ConnectResponse
	ended  chan struct{} // a stream was closed in order

	mu   sync.Mutex
	lost map[string]bool // leases that the answers to beats name
}

// newScriptedServer starts a server that takes all, and returns a worker of it that runs.
func newScriptedServer(t *testing.T, change func(*scriptedServer), o worker.Options) (*scriptedServer, *running) {
	t.Helper()
	s := &scriptedServer{
		welcome: func(*graphdv1.Hello) *graphdv1.Welcome { return newWelcome() },
		complete: func(*graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			return &graphdv1.CompleteTaskResponse{}, nil
		},
		memo: func(r *graphdv1.RecordMemoRequest) (*graphdv1.RecordMemoResponse, error) {
			return &graphdv1.RecordMemoResponse{Value: r.GetValue()}, nil
		},
		hellos: make(chan *graphdv1.Hello, 100), heard: make(chan *graphdv1.ConnectRequest, 10_000),
		say: make(chan *graphdv1.ConnectResponse, 100), ended: make(chan struct{}, 100), lost: make(map[string]bool),
	}
	if change != nil {
		change(s)
	}
	listener := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	graphdv1.RegisterWorkerServiceServer(g, s)
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	w, err := worker.New(conn, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	r := &running{Worker: w, t: t, cancel: cancel, end: make(chan error, 1)}
	go func() { r.end <- w.Run(ctx) }()
	return s, r
}

func newWelcome() *graphdv1.Welcome {
	return &graphdv1.Welcome{
		BeatInterval: durationpb.New(50 * time.Millisecond), LeaseTtl: durationpb.New(time.Minute), Features: []string{"drift"},
	}
}

func (s *scriptedServer) Connect(stream graphdv1.WorkerService_ConnectServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	s.hellos <- first.GetHello()
	if err := stream.Send(&graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Welcome{Welcome: s.welcome(first.GetHello())}}); err != nil {
		return err
	}
	requests := make(chan *graphdv1.ConnectRequest)
	go func() {
		defer close(requests)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			requests <- r
		}
	}()
	for {
		select {
		case r, isOpen := <-requests:
			if !isOpen {
				s.ended <- struct{}{}
				return nil
			}
			if r.GetBeat() == nil {
				s.heard <- r
				continue
			}
			if err := stream.Send(&graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_BeatAck{BeatAck: s.answerBeat(r.GetBeat())}}); err != nil {
				return err
			}
		case r := <-s.say:
			if r == nil {
				return status.Error(codes.Unavailable, "the test ends the stream")
			}
			if err := stream.Send(r); err != nil {
				return err
			}
		}
	}
}

func (s *scriptedServer) answerBeat(b *graphdv1.Beat) *graphdv1.BeatAck {
	s.mu.Lock()
	defer s.mu.Unlock()
	ack := &graphdv1.BeatAck{Number: b.GetNumber()}
	for _, token := range b.GetRunning() {
		if s.lost[string(token)] {
			ack.Lost = append(ack.Lost, token)
		}
	}
	return ack
}

func (s *scriptedServer) loseLease(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[token] = true
}

func (s *scriptedServer) CompleteTask(_ context.Context, r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
	return s.complete(r)
}

func (s *scriptedServer) RecordMemo(_ context.Context, r *graphdv1.RecordMemoRequest) (*graphdv1.RecordMemoResponse, error) {
	return s.memo(r)
}

// hear returns the next message of a kind.
func hear[T any](t *testing.T, s *scriptedServer, kind func(*graphdv1.ConnectRequest) (T, bool)) T {
	t.Helper()
	for {
		if m, ok := kind(receive(t, s.heard, "a message of the worker")); ok {
			return m
		}
	}
}

func newTask(token string) *graphdv1.TaskAssignment {
	return &graphdv1.TaskAssignment{
		Lease: &graphdv1.TaskLease{Token: []byte(token)}, Kind: graphdv1.TaskKind_TASK_KIND_NODE, ThreadId: "t", TaskId: "task", Graph: "g", Node: "n",
	}
}

func assign(a *graphdv1.TaskAssignment) *graphdv1.ConnectResponse {
	return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Task{Task: a}}
}

func reasonError(code codes.Code, reason string) error {
	s, err := status.New(code, reason).WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "graphd"})
	if err != nil {
		return err
	}
	return s.Err()
}

func TestAnOldServerIsRefused(t *testing.T) {
	_, w := newScriptedServer(t, func(s *scriptedServer) {
		s.welcome = func(*graphdv1.Hello) *graphdv1.Welcome { return &graphdv1.Welcome{} }
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", update(`{}`))}})
	require.ErrorContains(t, receive(t, w.end, "the end of the worker"), `lacks the feature "drift"`)
}

func TestAResultIsHandedOverUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	results := make(chan *graphdv1.CompleteTaskRequest, 100)
	failures := []error{
		status.Error(codes.Unavailable, "away"), reasonError(codes.DeadlineExceeded, "WAIT_TIMEOUT"), status.Error(codes.Unauthenticated, "an old token"),
	}
	var calls atomic.Int32
	s, _ := newScriptedServer(t, func(s *scriptedServer) {
		s.complete = func(r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			if n := int(calls.Add(1)); n <= len(failures) {
				return nil, failures[n-1]
			}
			results <- r
			if string(r.GetLeaseToken()) == "one" {
				return &graphdv1.CompleteTaskResponse{Next: newTask("two")}, nil
			}
			return &graphdv1.CompleteTaskResponse{}, nil
		}
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", update(`{"a":1}`))}})
	s.say <- assign(newTask("one"))
	for _, token := range []string{"one", "two"} {
		r := receive(t, results, "a result")
		require.Equal(t, token, string(r.GetLeaseToken()))
		require.JSONEq(t, `{"a":1}`, r.GetResult().GetCompleted().GetUpdate().GetJson())
	}
}

func TestARefusedResultBecomesAFailure(t *testing.T) {
	results := make(chan *graphdv1.CompleteTaskRequest, 100)
	s, _ := newScriptedServer(t, func(s *scriptedServer) {
		s.complete = func(r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			if r.GetResult().GetFailed() == nil {
				return nil, status.Error(codes.ResourceExhausted, "too large for a message")
			}
			results <- r
			return &graphdv1.CompleteTaskResponse{}, nil
		}
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", update(`{"a":1}`))}})
	s.say <- assign(newTask("one"))
	failed := receive(t, results, "a failure").GetResult().GetFailed()
	require.Equal(t, "ResultNotTaken", failed.GetType())
	require.Contains(t, failed.GetMessage(), "too large for a message")
	require.True(t, failed.GetNonRetryable())
}

func TestALeaseIsLostWhenTheStreamSaysSo(t *testing.T) {
	var calls atomic.Int32
	asked := make(chan struct{}, 1000)
	s, w := newScriptedServer(t, func(s *scriptedServer) {
		s.complete = func(*graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			calls.Add(1)
			asked <- struct{}{}
			return nil, reasonError(codes.Aborted, "TASK_LEASE_LOST") // of a server that knows less
		}
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", update(`{"a":1}`))}})
	s.say <- assign(newTask("one"))
	for range 3 {
		receive(t, asked, "a call")
	}
	s.loseLease("one")
	require.NoError(t, w.stop(), "the lost task is no task any more")
	require.GreaterOrEqual(t, calls.Load(), int32(3))
}

func TestAnUndecidedTaskBeginsNoEffect(t *testing.T) {
	results := make(chan *graphdv1.CompleteTaskRequest, 100)
	begun, open := make(chan struct{}, 1), make(chan struct{})
	var effects atomic.Int32
	var isSecond atomic.Bool
	s, _ := newScriptedServer(t, func(s *scriptedServer) {
		s.welcome = func(h *graphdv1.Hello) *graphdv1.Welcome {
			welcome := newWelcome()
			welcome.BeatInterval = durationpb.New(time.Minute) // the answer to a beat would decide
			if len(h.GetHeldLeases()) > 0 {
				isSecond.Store(true)
				welcome.Undecided = h.GetHeldLeases()
			}
			return welcome
		}
		s.complete = func(r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			results <- r
			return &graphdv1.CompleteTaskResponse{}, nil
		}
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", func(ctx context.Context, _ graph.State) (any, error) {
		begun <- struct{}{}
		<-open
		_, err := graph.Memo(ctx, "m", func(context.Context) (int32, error) { return effects.Add(1), nil })
		return map[string]any{"a": 1}, err
	})}})
	s.say <- assign(newTask("one"))
	receive(t, begun, "the node")
	s.say <- nil
	receive(t, s.hellos, "the hello")
	h := receive(t, s.hellos, "the second hello")
	require.Equal(t, [][]byte{[]byte("one")}, h.GetHeldLeases())
	close(open)
	s.say <- &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Throttle{Throttle: &graphdv1.Throttle{}}} // a message that decides nothing
	hear(t, s, func(r *graphdv1.ConnectRequest) (bool, bool) { return true, r.GetUpdate().GetAlive() != nil })
	require.Zero(t, effects.Load())
	s.say <- &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Renewed{Renewed: &graphdv1.TaskLease{Token: []byte("one")}}}
	receive(t, results, "the result")
	require.Equal(t, int32(1), effects.Load())
	require.True(t, isSecond.Load())
}

func TestATaskThatComesTwiceRunsOnce(t *testing.T) {
	results := make(chan *graphdv1.CompleteTaskRequest, 100)
	var runs atomic.Int32
	begun, open := make(chan struct{}, 10), make(chan struct{})
	s, w := newScriptedServer(t, func(s *scriptedServer) {
		s.complete = func(r *graphdv1.CompleteTaskRequest) (*graphdv1.CompleteTaskResponse, error) {
			results <- r
			return &graphdv1.CompleteTaskResponse{}, nil
		}
	}, worker.Options{Graphs: []*graph.Builder{oneNode("g", func(context.Context, graph.State) (any, error) {
		runs.Add(1)
		begun <- struct{}{}
		<-open
		return nil, nil
	})}, Slots: 2})
	s.say <- &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Batch{Batch: &graphdv1.ConnectResponseBatch{
		Responses: []*graphdv1.ConnectResponse{assign(newTask("one")), assign(newTask("one"))},
	}}}
	receive(t, begun, "the node")
	for i := range 4 { // two more than the slots allow, even for a moment
		s.say <- assign(newTask(strconv.Itoa(i)))
	}
	nack := hear(t, s, func(r *graphdv1.ConnectRequest) (*graphdv1.Nack, bool) { return r.GetNack(), r.GetNack() != nil })
	require.Equal(t, "the worker has no slot", nack.GetReason())
	unknown := newTask("unknown")
	unknown.Node = "nobody"
	s.say <- assign(unknown)
	nack = hear(t, s, func(r *graphdv1.ConnectRequest) (*graphdv1.Nack, bool) { return r.GetNack(), r.GetNack() != nil })
	require.Equal(t, `the worker has no code for node "nobody", function "" of graph "g"`, nack.GetReason())
	close(open)
	for range 4 {
		receive(t, results, "a result")
	}
	require.NoError(t, w.stop())
	require.Equal(t, int32(4), runs.Load())
	hear(t, s, func(r *graphdv1.ConnectRequest) (bool, bool) { return true, r.GetGoodbye() != nil })
	receive(t, s.ended, "the end of the stream in order")
}
