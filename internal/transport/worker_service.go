package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// workerService serves processes that run nodes.
type workerService struct {
	graphdv1.UnimplementedWorkerServiceServer
	*service

	hub     *worker.Hub
	graphs  Registry
	version string
}

// workerFeatures are the optional parts of the protocol that the server knows.
func workerFeatures() []string { return []string{"complete", "next", featureDrift} }

// featureDrift says that a process compares what its code asks with what was
// answered, and that the server says what was shown.
const featureDrift = "drift"

type workerStream = interface {
	Send(*graphdv1.ConnectResponse) error
	Recv() (*graphdv1.ConnectRequest, error)
	Context() context.Context
}

// helloWithin is how long a stream may stay without its first message.
const helloWithin = 10 * time.Second

// Connect keeps the session of a worker until one side ends it.
func (s *workerService) Connect(stream graphdv1.WorkerService_ConnectServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	incoming := receive(ctx, stream)
	hello, err := s.greeting(ctx, incoming)
	if err != nil {
		return err
	}
	session, err := s.open(ctx, stream, hello)
	if err != nil {
		return err
	}
	defer session.Close()
	go contain.Func(func() { cancel(s.listen(ctx, session, incoming)) },
		func(p *contain.PanicError) { cancel(p) })()
	spoken := make(chan error, 1)
	go contain.Func(func() { spoken <- s.speak(ctx, session, stream) },
		func(p *contain.PanicError) { spoken <- p })()
	select {
	case err := <-spoken:
		return err
	case <-session.Ended():
	}
	timer := time.NewTimer(lastWord)
	defer timer.Stop()
	select {
	case err := <-spoken:
		return err
	case <-timer.C: // the worker does not read; the end of the stream ends the goroutine
		_, err := session.Next(ctx)
		return ended(ctx, err)
	}
}

// lastWord is how long a session that has ended may take to say so.
const lastWord = time.Second

// received is what came from a worker.
type received struct {
	message *graphdv1.ConnectRequest
	err     error
}

// receive reads the stream. It ends with the stream.
func receive(ctx context.Context, stream workerStream) <-chan received {
	out := make(chan received)
	hand := func(r received) (more bool) {
		select {
		case out <- r:
			return r.err == nil
		case <-ctx.Done():
			return false
		}
	}
	go contain.Func(func() {
		for more := true; more; {
			m, err := stream.Recv()
			more = hand(received{m, err})
		}
	}, func(p *contain.PanicError) { hand(received{nil, p}) })()
	return out
}

// greeting waits for the first message.
func (*workerService) greeting(ctx context.Context, incoming <-chan received) (*graphdv1.Hello, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helloWithin, errNoHello)
	defer cancel()
	select {
	case r := <-incoming:
		if r.err != nil {
			return nil, r.err
		}
		hello := r.message.GetHello()
		if hello == nil {
			return nil, noHello()
		}
		return hello, nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errNoHello) {
			return nil, noHello()
		}
		return nil, context.Cause(ctx)
	}
}

var errNoHello = errors.New("no hello")

func noHello() error {
	return runtime.Errorf(runtime.ReasonInvalidField, "the first message must be hello").
		With("field", "hello").InField("hello", "must be the first message, within %s", helloWithin)
}

// open checks a greeting, keeps the graphs that come with it, begins the
// session and says welcome.
func (s *workerService) open(ctx context.Context, stream workerStream, h *graphdv1.Hello) (*worker.Session, error) {
	b := s.border()
	hello := helloIn(b, h)
	if err := b.err(); err != nil {
		return nil, err
	}
	protocol, err := protocolOf(h.GetManifest())
	if err != nil {
		return nil, err
	}
	registered, err := s.register(ctx, &hello, h.GetManifest().GetGraphs())
	if err != nil {
		return nil, err
	}
	session, w, err := s.hub.Open(hello)
	if err != nil {
		return nil, err
	}
	welcome := &graphdv1.Welcome{
		SessionId: w.Session, Protocol: protocol, BeatInterval: durationOut(w.Beat), LeaseTtl: durationOut(w.LeaseTTL),
		Lost: tokensOut(w.Lost), Undecided: tokensOut(w.Undecided), MaxMessageBytes: count(s.maxBytes), MaxPayloadBytes: count(s.limits.MaxBytes),
		MaxResultBytes: maxResult, Graphs: registered, ServerVersion: s.version, Features: workerFeatures(),
	}
	for _, token := range w.Renewed {
		welcome.Renewed = append(welcome.Renewed, leaseOut(token, w.LeaseTTL))
	}
	if err := stream.Send(&graphdv1.ConnectResponse{
		Kind: &graphdv1.ConnectResponse_Welcome{Welcome: welcome},
	}); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// register keeps the graphs that a worker brings along; it serves those that
// are kept. One that is refused does not keep the others from being served.
func (s *workerService) register(
	ctx context.Context, hello *worker.Hello, specs []*graphdv1.GraphSpec,
) ([]*graphdv1.GraphRegistration, error) {
	var out []*graphdv1.GraphRegistration
	for _, spec := range specs {
		g, err := s.put(ctx, spec)
		if err == nil {
			hello.Serves = append(hello.Serves, worker.Served{Graph: g.Name, Version: g.Version})
			out = append(out, &graphdv1.GraphRegistration{Graph: g.Name, Version: g.Version})
			continue
		}
		refused := refusal(err)
		if refused == nil || refused.StoreAway() {
			return nil, err
		}
		out = append(out, &graphdv1.GraphRegistration{Graph: spec.GetName(), Problems: problemsOf(refused)})
	}
	return out, nil
}

func (s *workerService) put(ctx context.Context, spec *graphdv1.GraphSpec) (*graph.Graph, error) {
	b := s.border()
	in := specIn(b, spec)
	if err := b.err(); err != nil {
		return nil, err
	}
	entry, err := s.graphs.PutGraph(ctx, runtime.GraphPut{Spec: in})
	if err != nil {
		return nil, err
	}
	return entry.Graph, nil
}

func problemsOf(e *runtime.Error) []*graphdv1.GraphProblem {
	if len(e.Violations) == 0 {
		return []*graphdv1.GraphProblem{{Description: e.Message}}
	}
	var out []*graphdv1.GraphProblem
	for _, v := range e.Violations {
		out = append(out, &graphdv1.GraphProblem{Field: v.Field, Description: describe(v)})
	}
	return out
}

// listen takes in what the worker says. It returns why the stream is over: nil
// when the worker has closed it in order.
func (s *workerService) listen(ctx context.Context, session *worker.Session, incoming <-chan received) error {
	for {
		select {
		case r := <-incoming:
			if errors.Is(r.err, io.EOF) {
				session.HearEnd()
				return io.EOF
			}
			if r.err != nil {
				return r.err
			}
			if err := s.hear(ctx, session, r.message); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *workerService) hear(ctx context.Context, session *worker.Session, m *graphdv1.ConnectRequest) error {
	b := s.border()
	switch kind := m.GetKind().(type) {
	case *graphdv1.ConnectRequest_Hello:
		b.refuse("hello", "may only be the first message")
	case *graphdv1.ConnectRequest_Credit:
		if credit := creditIn(b, "credit", kind.Credit); b.err() == nil {
			session.Credit(credit)
		}
	case *graphdv1.ConnectRequest_Update:
		s.update(b, session, kind.Update)
	case *graphdv1.ConnectRequest_Beat:
		if running := tokensIn(b, "beat.running", kind.Beat.GetRunning()); b.err() == nil {
			session.Beat(kind.Beat.GetNumber(), running)
		}
	case *graphdv1.ConnectRequest_Nack:
		token, delay := tokenIn(b, "nack.lease_token", kind.Nack.GetLeaseToken()),
			b.duration("nack.retry_delay", kind.Nack.GetRetryDelay())
		if b.err() == nil {
			session.Nack(token, clip(kind.Nack.GetReason(), maxText), delay)
		}
	case *graphdv1.ConnectRequest_Goodbye:
		if released := tokensIn(b, "goodbye.released", kind.Goodbye.GetReleased()); b.err() == nil {
			session.Goodbye(released, clip(kind.Goodbye.GetReason(), maxText))
		}
	case *graphdv1.ConnectRequest_Complete:
		if c := s.completionIn(b, "complete.", kind.Complete); b.err() == nil {
			c.Bytes = proto.Size(kind.Complete)
			session.Complete(ctx, c)
		}
	default:
		b.refuse("kind", "must be set")
	}
	return b.err()
}

func (s *workerService) update(b *border, session *worker.Session, u *graphdv1.TaskUpdate) {
	token := tokenIn(b, "update.lease_token", u.GetLeaseToken())
	switch kind := u.GetKind().(type) {
	case *graphdv1.TaskUpdate_Emit:
		if b.err() == nil {
			events, dropped := emitIn(s.limits, kind.Emit)
			session.Emit(token, events, dropped)
		}
	case *graphdv1.TaskUpdate_Alive:
		if b.err() == nil {
			session.Alive(token)
		}
	case *graphdv1.TaskUpdate_Result:
		b.refuse("update.result", "goes by complete or CompleteTask, which are acknowledged")
	default:
		b.refuse("update.kind", "must be set")
	}
}

// speak sends what the hub has for the worker, until the session ends.
func (s *workerService) speak(ctx context.Context, session *worker.Session, stream workerStream) error {
	for {
		m, err := session.Next(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		out := s.messageOut(m)
		if out == nil {
			continue
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// ended is nil for a stream that the worker has closed in order.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func tooLargeToSend(size, limit int) worker.Result {
	return unusable(runtime.FailedOutputTooLarge, fmt.Sprintf("what the task needs has %d bytes, more than the %d "+
		"of a message; name the keys that the node needs in its reads", size, limit))
}

// CompleteTask takes the result of a task.
func (s *workerService) CompleteTask(
	ctx context.Context, req *graphdv1.CompleteTaskRequest,
) (*graphdv1.CompleteTaskResponse, error) {
	b := s.border()
	c := s.completionIn(b, "", req)
	if err := b.err(); err != nil {
		return nil, err
	}
	receipt, err := s.hub.Complete(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.receiptOut(receipt), nil
}

func (s *workerService) completionIn(b *border, at string, req *graphdv1.CompleteTaskRequest) worker.Completion {
	c := worker.Completion{
		Token: tokenIn(b, at+"lease_token", req.GetLeaseToken()), Emitted: req.GetEmitted(), Next: req.GetTakeNext(),
	}
	if b.err() == nil {
		c.Result, c.Refused = outcomeIn(s.limits, req.GetResult())
		c.Events, c.Dropped = emitIn(s.limits, req.GetEmit())
	}
	return c
}

func (s *workerService) receiptOut(r worker.Receipt) *graphdv1.CompleteTaskResponse {
	return &graphdv1.CompleteTaskResponse{Duplicate: r.Duplicate, Next: s.sendable(r.Next)}
}

// messageOut converts what is to be sent to a worker. It is nil for a task that
// can't be sent, which has failed then.
func (s *workerService) messageOut(m worker.Message) *graphdv1.ConnectResponse {
	switch m := m.(type) {
	case worker.Assignment:
		if task := s.sendable(&m); task != nil {
			return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Task{Task: task}}
		}
		return nil
	case worker.Reply:
		out := &graphdv1.Completed{LeaseToken: []byte(m.Token)}
		if m.Err != nil {
			out.Reason, out.Message = complaint(m.Err)
		} else {
			out.Response = s.receiptOut(m.Receipt)
		}
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Completed{Completed: out}}
	}
	return messageOut(m)
}

// complaint is an error as data.
func complaint(err error) (reason, message string) {
	if refused := refusal(err); refused != nil {
		return refused.Reason, refused.Message
	}
	return runtime.ReasonInternal, "the result could not be taken; call CompleteTask"
}

// sendable converts the next task of a worker. One that can't be sent fails.
func (s *workerService) sendable(a *worker.Assignment) *graphdv1.TaskAssignment {
	if a == nil {
		return nil
	}
	out := assignmentOut(*a)
	if size := proto.Size(out); size > s.maxBytes {
		s.hub.Fail(a.Token, tooLargeToSend(size, s.maxBytes))
		return nil
	}
	return out
}

// RecordMemo records the value of a memo.
func (s *workerService) RecordMemo(
	ctx context.Context, req *graphdv1.RecordMemoRequest,
) (*graphdv1.RecordMemoResponse, error) {
	b := s.border()
	token := tokenIn(b, "lease_token", req.GetLeaseToken())
	b.must("key", req.GetKey() != "")
	b.must("value", req.GetValue() != nil)
	memo := checkpoint.Memo{
		Scope: b.name("scope", req.GetScope()), Key: b.name("key", req.GetKey()), Index: int(req.GetIndex()),
		Value: b.payload("value", req.GetValue()),
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	value, existed, err := s.hub.Remember(ctx, token, memo)
	if err != nil {
		return nil, err
	}
	return &graphdv1.RecordMemoResponse{Value: jsonOut(value), Existed: existed}, nil
}

// CallGraph runs a graph inside a task.
func (s *workerService) CallGraph(
	ctx context.Context, req *graphdv1.CallGraphRequest,
) (*graphdv1.CallGraphResponse, error) {
	b := s.border()
	token := tokenIn(b, "lease_token", req.GetLeaseToken())
	b.must("graph", req.GetGraph() != "")
	call := runtime.GraphCall{
		Index: b.limit("call_index", req.GetCallIndex()),
		Graph: b.name("graph", req.GetGraph()), Version: b.name("graph_version", req.GetGraphVersion()),
		Input:  b.payload("input", req.GetInput()),
		Before: b.names("interrupt_before", req.GetInterruptBefore()),
		After:  b.names("interrupt_after", req.GetInterruptAfter()), Persistence: persistenceIn(req.GetPersistence()),
		Context: b.payload("context", req.GetContext()), StepLimit: b.limit("step_limit", req.GetStepLimit()),
	}
	if call.Input == "" && call.Persistence != persist {
		b.must("input", false)
	}
	if err := b.err(); err != nil {
		return nil, err
	}
	r, err := s.hub.Call(ctx, token, call)
	if err != nil {
		return nil, err
	}
	return callOut(r), nil
}
