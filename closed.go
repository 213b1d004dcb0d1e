package graphd

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// ErrClosed is found by errors.Is in the error of each call that an engine refuses or cuts because it
// is closed. What was under way goes on when the store is opened again.
var ErrClosed = errors.New("the engine is closed")

// closedError is the error of a call that met the end of its engine.
type closedError struct{ cause *status.Status }

// Error is that of a gRPC status.
func (e *closedError) Error() string { return e.cause.Err().Error() }

// Unwrap returns ErrClosed.
func (*closedError) Unwrap() error { return ErrClosed }

// GRPCStatus returns the status with which the call has ended: clients branch on it.
func (e *closedError) GRPCStatus() *status.Status { return e.cause }

// endingConn has calls fail with ErrClosed that meet the end of an engine.
type endingConn struct {
	grpc.ClientConnInterface

	isClosing *atomic.Bool
}

// Invoke makes a unary call.
func (c endingConn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	return c.explainEnd(ctx.Err, c.ClientConnInterface.Invoke(ctx, method, args, reply, options...))
}

// NewStream begins a stream.
func (c endingConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, options...)
	if err != nil {
		return nil, c.explainEnd(ctx.Err, err)
	}
	return endingStream{stream, c, ctx.Err}, nil
}

// explainEnd returns the error of a call, or an ErrClosed where the engine has ended it and not the
// caller. An engine that is being closed keeps the status, by which clients call again until it is
// closed.
func (c endingConn) explainEnd(callerErr func() error, err error) error {
	if err == nil || callerErr() != nil || !c.isClosing.Load() {
		return err
	}
	switch s, _ := status.FromError(err); s.Code() {
	case codes.Unavailable:
		return &closedError{s}
	case codes.Canceled:
		return &closedError{status.New(codes.Canceled, ErrClosed.Error())}
	default:
		return err
	}
}

// endingStream is a stream of an endingConn.
type endingStream struct {
	grpc.ClientStream

	conn      endingConn
	callerErr func() error // of the context of the caller; that of the stream ends with it
}

// Header waits for the headers.
func (s endingStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	return header, s.conn.explainEnd(s.callerErr, err)
}

// SendMsg sends a message.
func (s endingStream) SendMsg(m any) error {
	return s.conn.explainEnd(s.callerErr, s.ClientStream.SendMsg(m))
}

// RecvMsg receives a message.
func (s endingStream) RecvMsg(m any) error {
	return s.conn.explainEnd(s.callerErr, s.ClientStream.RecvMsg(m))
}
