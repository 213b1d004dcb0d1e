package transport

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// workerService serves processes that run nodes.
type workerService struct {
	graphdv1.UnimplementedWorkerServiceServer
	*service

	hub     *worker.Hub
	changes graphChanges
	version string
}

// workerFeatures returns the optional parts of the protocol that the server
// supports.
func workerFeatures() []string { return []string{"complete", "next", wire.FeatureDrift} }

type workerStream = interface {
	Send(*graphdv1.ConnectResponse) error
	Recv() (*graphdv1.ConnectRequest, error)
	Context() context.Context
}

// helloTimeout is how long a stream may stay without its first message.
const helloTimeout = 10 * time.Second

// Connect keeps the session of a worker until one side ends it. Errors:
// INVALID_FIELD, QUOTA_EXCEEDED, those with which the hub ends the session, and those of the
// stream.
func (s *workerService) Connect(stream graphdv1.WorkerService_ConnectServer) error {
	if err := interceptor.HoldWorker(stream.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	incoming := receiveMessages(ctx, stream)
	hello, err := s.receiveHello(ctx, incoming)
	if err != nil {
		return err
	}
	session, err := s.openSession(ctx, stream, s.hub.NumberHello(), hello)
	if err != nil {
		return err
	}
	defer session.Close()
	go contain.Func(func() { cancel(s.handleMessages(ctx, session, incoming)) },
		func(p *contain.PanicError) { cancel(p) })()
	spoken := make(chan error, 1)
	go contain.Func(func() { spoken <- s.sendMessages(ctx, session, stream) },
		func(p *contain.PanicError) { spoken <- p })()
	select {
	case err := <-spoken:
		return err
	case <-session.Ended():
	}
	timer := time.NewTimer(lastMessageTimeout)
	defer timer.Stop()
	select {
	case err := <-spoken:
		return err
	case <-timer.C: // the worker does not read; the end of the stream ends the goroutine
		_, err := session.NextMessage(ctx)
		return streamEndError(ctx, err)
	}
}

// lastMessageTimeout is how long a session that has ended may take to send the
// reason.
const lastMessageTimeout = time.Second

// receivedMessage is a message from a worker, or the error that ended the stream.
type receivedMessage struct {
	message *graphdv1.ConnectRequest
	err     error
}

// receiveMessages reads the stream. It ends with the stream.
func receiveMessages(ctx context.Context, stream workerStream) <-chan receivedMessage {
	out := make(chan receivedMessage)
	hand := func(r receivedMessage) (more bool) {
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
			more = hand(receivedMessage{m, err})
		}
	}, func(p *contain.PanicError) { hand(receivedMessage{nil, p}) })()
	return out
}

// receiveHello waits for the first message.
func (*workerService) receiveHello(ctx context.Context, incoming <-chan receivedMessage) (*graphdv1.Hello, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helloTimeout, errNoHello)
	defer cancel()
	select {
	case r := <-incoming:
		if r.err != nil {
			return nil, r.err
		}
		hello := r.message.GetHello()
		if hello == nil {
			return nil, noHelloError()
		}
		return hello, nil
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errNoHello) {
			return nil, noHelloError()
		}
		return nil, context.Cause(ctx)
	}
}

var errNoHello = errors.New("no hello")

func noHelloError() error {
	return runtime.Errorf(runtime.ReasonInvalidField, "the first message must be hello").
		With("field", "hello").WithViolation("hello", "must be the first message, within %s", helloTimeout)
}

// openSession checks a hello, registers the graphs in it, begins the session and
// sends the welcome. number is that of the hello.
func (s *workerService) openSession(ctx context.Context, stream workerStream, number uint64, h *graphdv1.Hello) (*worker.Session, error) {
	v := s.newValidator(ctx)
	hello := wire.HelloFromProto(v, h)
	hello.Number, hello.Principal = number, callerNameOf(ctx)
	if err := v.Err(); err != nil {
		return nil, err
	}
	protocol, err := wire.NegotiateProtocol(h.GetManifest())
	if err != nil {
		return nil, err
	}
	if err := s.checkServed(ctx, hello.Capabilities, h.GetManifest().GetGraphs()); err != nil {
		return nil, err
	}
	registered, err := s.registerGraphs(ctx, &hello, h.GetManifest().GetGraphs())
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // it would take the place of a newer stream, of which this hello knows nothing
		return nil, context.Cause(ctx)
	}
	session, w, err := s.hub.OpenSession(hello)
	if err != nil {
		return nil, err
	}
	welcome := &graphdv1.Welcome{
		SessionId: w.SessionID, Protocol: protocol, BeatInterval: wire.DurationToProto(w.HeartbeatInterval), LeaseTtl: wire.DurationToProto(w.LeaseTTL),
		Lost: wire.LeaseTokensToProto(w.LostLeases), Undecided: wire.LeaseTokensToProto(w.UndecidedLeases), MaxMessageBytes: wire.ClampUint32(s.maxMessageBytes), MaxPayloadBytes: wire.ClampUint32(s.limits.MaxBytes),
		MaxResultBytes: wire.MaxResultBytes, Graphs: registered, ServerVersion: s.version, Features: workerFeatures(),
	}
	for _, token := range w.RenewedLeases {
		welcome.Renewed = append(welcome.Renewed, wire.LeaseToProto(token, w.LeaseTTL))
	}
	if err := stream.Send(&graphdv1.ConnectResponse{
		Kind: &graphdv1.ConnectResponse_Welcome{Welcome: welcome},
	}); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// checkServed refuses a worker that names a graph which its caller may not serve. The
// others get only tasks of graphs that they have named. The error is ACCESS_DENIED.
func (s *workerService) checkServed(ctx context.Context, served []worker.Capability, brought []*graphdv1.GraphSpec) error {
	if s.access == nil {
		return nil
	}
	checked := map[string]bool{}
	check := func(name string) error {
		if checked[name] {
			return nil
		}
		checked[name] = true
		return s.access.CheckGraph(ctx, graphdv1.WorkerService_Connect_FullMethodName, name)
	}
	for i := range served {
		if err := check(served[i].Graph); err != nil {
			return err
		}
	}
	for _, spec := range brought {
		if err := check(spec.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// checkHolder refuses a call under a lease that was given to the worker of another
// caller, or in another tenant. The error is TASK_LEASE_LOST.
func (s *workerService) checkHolder(ctx context.Context, token string) error {
	return s.hub.CheckHolder(token, interceptor.TenantOf(ctx), callerNameOf(ctx))
}

// registerGraphs stores the graphs that a worker brings along. The worker serves
// the stored graphs. A refused graph does not prevent the worker from serving the
// others.
func (s *workerService) registerGraphs(
	ctx context.Context, hello *worker.Hello, specs []*graphdv1.GraphSpec,
) ([]*graphdv1.GraphRegistration, error) {
	var out []*graphdv1.GraphRegistration
	for _, spec := range specs {
		g, err := s.putGraph(ctx, spec)
		if err == nil {
			hello.Capabilities = append(hello.Capabilities, worker.Capability{Graph: g.Name, Version: g.Version})
			out = append(out, &graphdv1.GraphRegistration{Graph: tenant.ClientName(g.Name), Version: g.Version})
			continue
		}
		refused := reason.ToClientError(err)
		if refused == nil || refused.IsStoreFault() {
			return nil, err
		}
		out = append(out, &graphdv1.GraphRegistration{Graph: spec.GetName(), Problems: graphProblems(refused)})
	}
	return out, nil
}

func (s *workerService) putGraph(ctx context.Context, spec *graphdv1.GraphSpec) (*graph.Graph, error) {
	v := s.newValidator(ctx)
	in := wire.GraphSpecFromProto(v, spec)
	if err := v.Err(); err != nil {
		return nil, err
	}
	entry, err := s.changes.putGraph(ctx, graphdv1.WorkerService_Connect_FullMethodName, runtime.PutGraphRequest{
		Tenant: interceptor.TenantOf(ctx), Spec: in,
	})
	if err != nil {
		return nil, err
	}
	return entry.Graph, nil
}

func graphProblems(e *runtime.Error) []*graphdv1.GraphProblem {
	if len(e.Violations) == 0 {
		return []*graphdv1.GraphProblem{{Description: e.Message}}
	}
	var out []*graphdv1.GraphProblem
	for _, v := range e.Violations {
		out = append(out, &graphdv1.GraphProblem{Field: v.Field, Description: reason.ViolationText(v)})
	}
	return out
}

// handleMessages handles the messages of the worker. It returns the reason for the
// end of the stream, nil when the worker has closed it in order.
func (s *workerService) handleMessages(ctx context.Context, session *worker.Session, incoming <-chan receivedMessage) error {
	for {
		select {
		case r := <-incoming:
			if errors.Is(r.err, io.EOF) {
				session.HandleStreamEnd()
				return io.EOF
			}
			if r.err != nil {
				return r.err
			}
			if err := s.handleMessage(ctx, session, r.message); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *workerService) handleMessage(ctx context.Context, session *worker.Session, m *graphdv1.ConnectRequest) error {
	v := s.newValidator(ctx)
	switch kind := m.GetKind().(type) {
	case *graphdv1.ConnectRequest_Hello:
		v.AddViolation("hello", "may only be the first message")
	case *graphdv1.ConnectRequest_Credit:
		if credit := wire.CreditFromProto(v, "credit", kind.Credit); v.Err() == nil {
			session.HandleCredit(credit)
		}
	case *graphdv1.ConnectRequest_Update:
		s.handleTaskUpdate(v, session, kind.Update)
	case *graphdv1.ConnectRequest_Beat:
		if running := wire.LeaseTokensFromProto(v, "beat.running", kind.Beat.GetRunning()); v.Err() == nil {
			session.HandleHeartbeat(kind.Beat.GetNumber(), running)
		}
	case *graphdv1.ConnectRequest_Nack:
		token, delay := wire.LeaseTokenFromProto(v, "nack.lease_token", kind.Nack.GetLeaseToken()),
			v.ConvertDuration("nack.retry_delay", kind.Nack.GetRetryDelay())
		if v.Err() == nil {
			session.HandleNack(token, reason.ClipText(kind.Nack.GetReason(), wire.MaxTextLength), delay)
		}
	case *graphdv1.ConnectRequest_Goodbye:
		if released := wire.LeaseTokensFromProto(v, "goodbye.released", kind.Goodbye.GetReleased()); v.Err() == nil {
			session.HandleGoodbye(released, reason.ClipText(kind.Goodbye.GetReason(), wire.MaxTextLength))
		}
	case *graphdv1.ConnectRequest_Complete:
		if c := s.completionFromProto(v, "complete.", kind.Complete); v.Err() == nil {
			c.Bytes = proto.Size(kind.Complete)
			session.HandleCompletion(ctx, c)
		}
	default:
		v.AddViolation("kind", "must be set")
	}
	return v.Err()
}

func (s *workerService) handleTaskUpdate(v *wire.Validator, session *worker.Session, u *graphdv1.TaskUpdate) {
	token := wire.LeaseTokenFromProto(v, "update.lease_token", u.GetLeaseToken())
	switch kind := u.GetKind().(type) {
	case *graphdv1.TaskUpdate_Emit:
		if v.Err() == nil {
			events, dropped := wire.EmissionsFromProto(s.limits, kind.Emit)
			session.HandleEvents(token, events, dropped)
		}
	case *graphdv1.TaskUpdate_Alive:
		if v.Err() == nil {
			session.HandleAlive(token)
		}
	case *graphdv1.TaskUpdate_Result:
		v.AddViolation("update.result", "goes by complete or CompleteTask, which are acknowledged")
	default:
		v.AddViolation("update.kind", "must be set")
	}
}

// sendMessages sends the messages of the hub to the worker, until the session ends.
func (s *workerService) sendMessages(ctx context.Context, session *worker.Session, stream workerStream) error {
	for {
		m, err := session.NextMessage(ctx)
		if err != nil {
			return streamEndError(ctx, err)
		}
		out := s.messageToProto(m)
		if out == nil {
			continue
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// streamEndError returns the error of a stream, nil when the worker has closed it
// in order.
func streamEndError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// CompleteTask records the result of a task. Errors: those of Validator.Err,
// TASK_LEASE_LOST, and WAIT_TIMEOUT.
func (s *workerService) CompleteTask(
	ctx context.Context, req *graphdv1.CompleteTaskRequest,
) (*graphdv1.CompleteTaskResponse, error) {
	v := s.newValidator(ctx)
	c := s.completionFromProto(v, "", req)
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.checkHolder(ctx, c.Token); err != nil {
		return nil, err
	}
	receipt, err := s.hub.CompleteTask(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.receiptToProto(receipt), nil
}

func (s *workerService) completionFromProto(v *wire.Validator, at string, req *graphdv1.CompleteTaskRequest) worker.Completion {
	c := worker.Completion{
		Token: wire.LeaseTokenFromProto(v, at+"lease_token", req.GetLeaseToken()), EventsOnStream: req.GetEmitted(), WantsNext: req.GetTakeNext(),
	}
	if v.Err() == nil {
		c.Result, c.IsRefused = wire.TaskResultFromProto(s.limits, req.GetResult())
		c.Events, c.DroppedEvents = wire.EmissionsFromProto(s.limits, req.GetEmit())
	}
	return c
}

func (s *workerService) receiptToProto(r worker.Receipt) *graphdv1.CompleteTaskResponse {
	return &graphdv1.CompleteTaskResponse{Duplicate: r.IsDuplicate, Next: s.assignmentOrFail(r.Next)}
}

// messageToProto converts a message to a worker. It returns nil for a task that
// can't be sent, and fails that task.
func (s *workerService) messageToProto(m worker.Message) *graphdv1.ConnectResponse {
	switch m := m.(type) {
	case worker.Assignment:
		if task := s.assignmentOrFail(&m); task != nil {
			return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Task{Task: task}}
		}
		return nil
	case worker.CompletionReply:
		out := &graphdv1.Completed{LeaseToken: []byte(m.Token)}
		if m.Err != nil {
			out.Reason, out.Message = errorToProto(m.Err)
		} else {
			out.Response = s.receiptToProto(m.Receipt)
		}
		return &graphdv1.ConnectResponse{Kind: &graphdv1.ConnectResponse_Completed{Completed: out}}
	}
	return wire.ControlMessageToProto(m)
}

// errorToProto returns the name and the message of an error.
func errorToProto(err error) (name, message string) {
	if refused := reason.ToClientError(err); refused != nil {
		return refused.Reason, refused.Message
	}
	return runtime.ReasonInternal, "the result could not be taken; call CompleteTask"
}

// assignmentOrFail converts the next task of a worker. It fails a task that is too
// large to send, and returns nil.
func (s *workerService) assignmentOrFail(a *worker.Assignment) *graphdv1.TaskAssignment {
	if a == nil {
		return nil
	}
	out := wire.TaskAssignmentToProto(*a)
	if size := proto.Size(out); size > s.maxMessageBytes {
		s.hub.FailTask(a.Token, wire.TooLargeTaskResult(size, s.maxMessageBytes))
		return nil
	}
	return out
}

// RecordMemo records the value of a memo. Errors: those of Validator.Err, and those
// of Hub.RecordMemo.
func (s *workerService) RecordMemo(
	ctx context.Context, req *graphdv1.RecordMemoRequest,
) (*graphdv1.RecordMemoResponse, error) {
	v := s.newValidator(ctx)
	token := wire.LeaseTokenFromProto(v, "lease_token", req.GetLeaseToken())
	v.RequireSet("key", req.GetKey() != "")
	v.RequireSet("value", req.GetValue() != nil)
	memo := checkpoint.Memo{
		Scope: v.CheckName("scope", req.GetScope()), Key: v.CheckName("key", req.GetKey()), Index: int(req.GetIndex()),
		Value: v.ConvertPayload("value", req.GetValue()),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.checkHolder(ctx, token); err != nil {
		return nil, err
	}
	value, existed, err := s.hub.RecordMemo(ctx, token, memo)
	if err != nil {
		return nil, err
	}
	return &graphdv1.RecordMemoResponse{Value: wire.JSONToProto(value), Existed: existed}, nil
}

// CallGraph runs a graph inside a task. Errors: those of Validator.Err, and those
// of Hub.CallGraph.
func (s *workerService) CallGraph(
	ctx context.Context, req *graphdv1.CallGraphRequest,
) (*graphdv1.CallGraphResponse, error) {
	v := s.newValidator(ctx)
	token := wire.LeaseTokenFromProto(v, "lease_token", req.GetLeaseToken())
	v.RequireSet("graph", req.GetGraph() != "")
	call := runtime.GraphCall{
		Index: v.ConvertLimit("call_index", req.GetCallIndex()),
		Graph: v.CheckGraphName("graph", req.GetGraph()), Version: v.CheckName("graph_version", req.GetGraphVersion()),
		Input:           v.ConvertPayload("input", req.GetInput()),
		InterruptBefore: v.CheckNames("interrupt_before", req.GetInterruptBefore()),
		InterruptAfter:  v.CheckNames("interrupt_after", req.GetInterruptAfter()), Persistence: wire.PersistenceFromProto(req.GetPersistence()),
		Context: v.ConvertPayload("context", req.GetContext()), StepLimit: v.ConvertLimit("step_limit", req.GetStepLimit()),
	}
	if call.Input == "" && call.Persistence != wire.PersistencePersist {
		v.RequireSet("input", false)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if err := s.checkHolder(ctx, token); err != nil {
		return nil, err
	}
	r, err := s.hub.CallGraph(ctx, token, call)
	if err != nil {
		return nil, err
	}
	return wire.CallResultToProto(r), nil
}
