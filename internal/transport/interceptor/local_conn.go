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
	"google.golang.org/protobuf/proto"

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
// authorized. Only who calls is known before. It is complete when all services are
// registered, and safe for concurrent use from then on.
type LocalConn struct {
	interceptors *Interceptors
	methods      map[string]localMethod
}

// localMethod is a method and the service that has it.
type localMethod struct {
	handler        func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)
	implementation any
}

// NewLocalConn makes a connection to the services that WrapRegistrar registers from now on.
func (i *Interceptors) NewLocalConn() *LocalConn {
	i.local = &LocalConn{interceptors: i, methods: map[string]localMethod{}}
	return i.local
}

// registerService adds the unary methods of a service.
func (c *LocalConn) registerService(service *grpc.ServiceDesc, implementation any) {
	if c == nil {
		return
	}
	for _, m := range service.Methods {
		c.methods["/"+service.ServiceName+"/"+m.MethodName] = localMethod{m.Handler, implementation}
	}
}

// Invoke makes a call for the caller of ctx. The error is a gRPC status, as clients get it.
func (c *LocalConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	request, isRequest := args.(proto.Message)
	into, isReply := reply.(proto.Message)
	called, ok := c.methods[method]
	caller := localCallerOf(ctx)
	if !ok || !isRequest || !isReply || caller == nil {
		return status.Errorf(codes.Internal, "no local call of %s", method)
	}
	encoded, err := proto.Marshal(request) // refuses texts that are not UTF-8, as gRPC does
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "encoding the request: %v", err)
	}
	ctx = grpc.NewContextWithServerTransportStream(ctx, localStream{method})
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: caller.Remote})
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{})
	decode := func(m any) error {
		if decoded, ok := m.(proto.Message); ok {
			return proto.Unmarshal(encoded, decoded)
		}
		return status.Errorf(codes.Internal, "%s takes no message", method)
	}
	answer, err := called.handler(called.implementation, ctx, decode, c.interceptors.interceptLocal)
	if err != nil {
		return err
	}
	if shown, ok := answer.(proto.Message); ok { // it is not encoded: no connection has bytes of it
		proto.Merge(into, shown)
		return nil
	}
	return status.Errorf(codes.Internal, "%s has no answer", method)
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

// localStream is what gRPC keeps of a call: its method. It sends no headers.
type localStream struct{ method string }

// Method returns the full name of the method.
func (s localStream) Method() string { return s.method }

// SetHeader does nothing.
func (localStream) SetHeader(metadata.MD) error { return nil }

// SendHeader does nothing.
func (localStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer does nothing.
func (localStream) SetTrailer(metadata.MD) error { return nil }
