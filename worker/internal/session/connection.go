package session

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/graphd-dev/graphd/client"
	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/backoff"
)

// Connection is that of a worker. One that was dialled is made anew when it is silent.
type Connection struct {
	dial func() (*grpc.ClientConn, error) // nil = the connection is that of the caller

	mu      sync.Mutex
	current grpc.ClientConnInterface
	close   func() error
}

// NewConnection takes a connection, which stays that of the caller.
func NewConnection(conn grpc.ClientConnInterface) *Connection {
	return &Connection{current: conn, close: func() error { return nil }}
}

// Dial makes a connection.
func Dial(dial func() (*grpc.ClientConn, error)) (*Connection, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	return &Connection{dial: dial, current: conn, close: conn.Close}, nil
}

// service returns the calls of the present connection.
func (c *Connection) service() graphdv1.WorkerServiceClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return graphdv1.NewWorkerServiceClient(c.current)
}

// renew gives a dialled connection up: calls that are under way are repeated on a new one.
func (c *Connection) renew() {
	if c.dial == nil {
		return
	}
	conn, err := c.dial()
	if err != nil {
		return // the address was good before; the next attempt tells
	}
	c.mu.Lock()
	old := c.close
	c.current, c.close = conn, conn.Close
	c.mu.Unlock()
	_ = old()
}

// Close closes a dialled connection.
func (c *Connection) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.close()
}

// anySize lets tasks of any size in.
func anySize() grpc.CallOption { return grpc.MaxCallRecvMsgSize(math.MaxInt32) }

// callTimeout is how long one call may take before it is made again.
const callTimeout = 2 * time.Minute

// callUntilAnswered makes a call of a task until the server has answered it, or the task is lost.
// Whether it is, the stream knows: a call may reach another server than the stream, and that one
// knows less.
func callUntilAnswered[Q, R any](s *Session, a *attempt, request Q, call func(context.Context, graphdv1.WorkerServiceClient, Q) (R, error)) (R, error) {
	policy := backoff.Policy{First: 50 * time.Millisecond, Max: 2 * time.Second, Jitter: 50 * time.Millisecond}
	for n := 1; ; n++ {
		ctx, cancel := context.WithTimeout(a.held, callTimeout)
		response, err := call(ctx, s.conn.service(), request)
		cancel()
		if err == nil {
			return response, nil
		}
		if a.held.Err() != nil {
			return response, context.Cause(a.held)
		}
		failure, _ := errors.AsType[*client.Error](client.FromGRPC(err))
		switch {
		case failure.Reason == client.TaskLeaseLost:
			s.askLeases()
		case failure.Reason == client.WaitTimeout, mayPass(failure.Code):
		default:
			return response, failure
		}
		if err := policy.Wait(a.held, n); err != nil {
			return response, err
		}
	}
}

// mayPass reports whether a call may be answered when it is made again: tokens are replaced, and
// servers too.
func mayPass(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unauthenticated, codes.Canceled:
		return true
	default:
		return false
	}
}

// refusalIn returns the error of a server that takes the worker in no case; nil when it is of use
// to connect again. A worker that was welcome waits until its credentials are in order again.
func refusalIn(err error, isWelcomed bool) error {
	if own, ok := errors.AsType[*finalError](err); ok {
		return own.err
	}
	failure, _ := errors.AsType[*client.Error](client.FromGRPC(err))
	if failure == nil {
		return nil
	}
	switch failure.Reason {
	case client.WorkerReplaced, client.WorkerIDTaken, client.AccessDenied, client.InvalidField, client.ProtocolMismatch, client.FeatureDisabled:
		return failure
	default:
	}
	switch failure.Code {
	case codes.Unimplemented:
		return failure
	case codes.Unauthenticated, codes.PermissionDenied:
		if !isWelcomed {
			return failure
		}
	default:
	}
	return nil
}

// finalError ends a session.
type finalError struct{ err error }

// Error is that of the cause.
func (e *finalError) Error() string { return e.err.Error() }
