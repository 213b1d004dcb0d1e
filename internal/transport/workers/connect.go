package workers

import (
	"context"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// workerFeatures returns the optional parts of the protocol that the server
// supports.
func workerFeatures() []string { return []string{"complete", "next", wire.FeatureDrift, featureBatch} }

type workerStream = interface {
	Send(*graphdv1.ConnectResponse) error
	Recv() (*graphdv1.ConnectRequest, error)
	Context() context.Context
}

// helloTimeout is how long a stream may stay without its first message.
const helloTimeout = 10 * time.Second

// Connect keeps the session of a worker until one side ends it. Errors: INVALID_FIELD,
// DEADLINE_EXCEEDED, QUOTA_EXCEEDED, those with which the hub ends the session, and those
// of the stream.
func (s *Service) Connect(stream graphdv1.WorkerService_ConnectServer) error {
	if err := interceptor.HoldWorker(stream.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	hello, err := s.receiveHello(ctx, stream)
	if err != nil {
		return err
	}
	session, err := s.openSession(ctx, stream, s.hub.NumberHello(), hello)
	if err != nil {
		return err
	}
	defer session.Close()
	go contain.Func(func() { cancel(s.handleMessages(ctx, session, stream)) },
		func(p *contain.PanicError) { cancel(p) })()
	spoken := make(chan error, 1)
	queue := s.newResponseQueue(session, hello.GetManifest().GetFeatures())
	go contain.Func(func() { spoken <- sendMessages(ctx, queue, stream) },
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

// receiveHello waits for the first message. Errors: INVALID_FIELD for another message,
// DEADLINE_EXCEEDED when none comes within helloTimeout: the worker or the network is slow.
func (*Service) receiveHello(ctx context.Context, stream workerStream) (*graphdv1.Hello, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, helloTimeout, lateHelloError())
	defer cancel()
	first := make(chan receivedMessage, 1) // the end of the stream ends the goroutine
	go contain.Func(func() {
		m, err := stream.Recv()
		first <- receivedMessage{m, err}
	}, func(p *contain.PanicError) { first <- receivedMessage{nil, p} })()
	select {
	case r := <-first:
		if r.err != nil {
			return nil, r.err
		}
		hello := r.message.GetHello()
		if hello == nil {
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "the first message must be hello").
				With("field", "hello").WithViolation("hello", "must be the first message")
		}
		return hello, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func lateHelloError() error {
	return runtime.Errorf(reason.DeadlineExceeded, "no hello came within %s; connect again", helloTimeout)
}
