package interceptor

import (
	"context"
	"net"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/graphd-dev/graphd/internal/identity"
)

// LocalCaller is a caller whom another door of this server has identified.
type LocalCaller struct {
	identity.Principal

	// Door is the name of the other door in the audit.
	Door string
	// Remote is the address of the client.
	Remote net.Addr
}

type localCallerKey struct{}

// WithLocalCaller returns a context whose calls of a LocalConn a caller makes.
func WithLocalCaller(ctx context.Context, caller *LocalCaller) context.Context {
	return context.WithValue(ctx, localCallerKey{}, caller)
}

// localCallerOf returns the caller of a call that came in by another door, nil = it came over
// gRPC.
func localCallerOf(ctx context.Context) *LocalCaller {
	caller, _ := ctx.Value(localCallerKey{}).(*LocalCaller)
	return caller
}

// LocalConn makes unary calls inside the server, for doors that do not speak gRPC. A call
// passes the interceptors of every call: it is counted, logged, audited, limited and
// authorized. Only who calls is known before. It is safe for concurrent use.
type LocalConn struct{ interceptors *Interceptors }

// NewLocalConn makes a connection to the services that WrapRegistrar registers.
func (i *Interceptors) NewLocalConn() *LocalConn { return &LocalConn{i} }

// Invoke makes a call for the caller of ctx. The error is a gRPC status, as clients get it.
func (c *LocalConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	caller := localCallerOf(ctx)
	if caller == nil {
		return status.Errorf(codes.Internal, "no local call of %s", method)
	}
	call, err := c.interceptors.newDirectCall(method, &peer.Peer{Addr: caller.Remote}, metadata.MD{}, args)
	if err != nil {
		return err
	}
	answer, err := call.serveCall(ctx, c.interceptors.interceptLocal)
	if err != nil {
		return err
	}
	return call.copyAnswer(reply, answer)
}

// NewStream refuses streams.
func (*LocalConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "a local call is unary")
}

// interceptLocal does what the interceptors of ServerOptions do, in their order.
func (i *Interceptors) interceptLocal(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return i.interceptUnary(ctx, req, info, func(ctx context.Context, req any) (any, error) {
		return recovery.UnaryServerInterceptor()(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			return i.admitLocal(ctx, req, info, handler)
		})
	})
}

// admitLocal identifies the caller of a local call, limits the rate, and authorizes.
func (i *Interceptors) admitLocal(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	caller := localCallerOf(ctx).Principal
	if i.authenticator == nil {
		return nil, &identity.Error{Reason: identity.NoCredentials}
	}
	recordCaller(ctx, &caller)
	if err := decideTenant(ctx, &caller); err != nil {
		return nil, err
	}
	if i.quotas != nil {
		if err := (rateLimiter{i.quotas}).Limit(ctx); err != nil {
			return nil, err
		}
	}
	if i.authorizer == nil {
		return handler(ctx, req)
	}
	return i.authorizeUnary(ctx, req, info, handler)
}
