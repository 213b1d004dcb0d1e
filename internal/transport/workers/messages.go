package workers

import (
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
	"github.com/graphd-dev/graphd/internal/worker"
)

// handleMessages handles the messages of the worker. It returns the reason for the
// end of the stream, nil when the worker has closed it in order.
func (s *Service) handleMessages(ctx context.Context, session *worker.Session, stream workerStream) error {
	for ctx.Err() == nil {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			session.HandleStreamEnd()
			return io.EOF
		}
		if err != nil {
			return err
		}
		if err := s.handleMessage(ctx, session, "", m); err != nil {
			return err
		}
	}
	return nil
}

// handleMessage handles a message of the worker. at is its path in the message of the
// stream, for the fields that errors name.
func (s *Service) handleMessage(ctx context.Context, session *worker.Session, at string, m *graphdv1.ConnectRequest) error {
	v := s.newValidator(ctx)
	switch kind := m.GetKind().(type) {
	case *graphdv1.ConnectRequest_Hello:
		v.AddViolation(at+"hello", "may only be the first message")
	case *graphdv1.ConnectRequest_Credit:
		if credit := wire.CreditFromProto(v, at+"credit", kind.Credit); v.Err() == nil {
			session.HandleCredit(credit)
		}
	case *graphdv1.ConnectRequest_Update:
		s.handleTaskUpdate(v, session, at+"update.", kind.Update)
	case *graphdv1.ConnectRequest_Beat:
		if running := wire.LeaseTokensFromProto(v, at+"beat.running", kind.Beat.GetRunning()); v.Err() == nil {
			session.HandleHeartbeat(kind.Beat.GetNumber(), running)
		}
	case *graphdv1.ConnectRequest_Nack:
		token, delay := wire.LeaseTokenFromProto(v, at+"nack.lease_token", kind.Nack.GetLeaseToken()),
			v.ConvertDuration(at+"nack.retry_delay", kind.Nack.GetRetryDelay())
		missing := digestsFromProto(v, at+"nack.missing", kind.Nack.GetMissing())
		if v.Err() == nil {
			session.HandleNack(token, reason.ClipText(kind.Nack.GetReason(), wire.MaxTextLength), delay, missing)
		}
	case *graphdv1.ConnectRequest_Goodbye:
		if released := wire.LeaseTokensFromProto(v, at+"goodbye.released", kind.Goodbye.GetReleased()); v.Err() == nil {
			session.HandleGoodbye(released, reason.ClipText(kind.Goodbye.GetReason(), wire.MaxTextLength))
		}
	case *graphdv1.ConnectRequest_Complete:
		if c := s.completionFromProto(v, at+"complete.", kind.Complete); v.Err() == nil {
			c.Bytes = proto.Size(kind.Complete)
			session.HandleCompletion(ctx, c)
		}
	case *graphdv1.ConnectRequest_Batch:
		return s.handleBatch(ctx, session, kind.Batch)
	default:
		v.AddViolation(at+"kind", "must be set")
	}
	return v.Err()
}

func (s *Service) handleTaskUpdate(v *wire.Validator, session *worker.Session, at string, u *graphdv1.TaskUpdate) {
	token := wire.LeaseTokenFromProto(v, at+"lease_token", u.GetLeaseToken())
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
		v.AddViolation(at+"result", "goes by complete or CompleteTask, which are acknowledged")
	default:
		v.AddViolation(at+"kind", "must be set")
	}
}

// sendMessages sends the messages of the hub to the worker, until the session ends.
func sendMessages(ctx context.Context, queue *responseQueue, stream workerStream) error {
	for {
		m, err := queue.Next(ctx)
		if err != nil {
			return streamEndError(ctx, err)
		}
		if err := stream.Send(m); err != nil {
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
