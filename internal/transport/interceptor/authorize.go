package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/identity"
)

// Authorizer decides whether a caller may make a call, by its first message.
type Authorizer interface {
	// AuthorizeCall refuses a call with an error. caller is nil for a call that needs no
	// credentials.
	AuthorizeCall(ctx context.Context, caller *identity.Principal, method string, request proto.Message) error
}

// AuthorizeCalls makes the interceptors ask an authorizer about every call. It is called
// before ServerOptions.
func (i *Interceptors) AuthorizeCalls(authorizer Authorizer) { i.authorizer = authorizer }

func (i *Interceptors) authorizeUnary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if err := i.authorizeCall(ctx, info.FullMethod, req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (i *Interceptors) authorizeStream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &authorizedStream{ServerStream: ss, method: info.FullMethod, interceptors: i})
}

func (i *Interceptors) authorizeCall(ctx context.Context, method string, message any) error {
	request, _ := message.(proto.Message)
	return i.authorizer.AuthorizeCall(ctx, CallerOf(ctx), method, request)
}

// authorizedStream is a stream that gives its first message to the service only when the
// caller may make the call. One goroutine receives.
type authorizedStream struct {
	grpc.ServerStream

	method       string
	interceptors *Interceptors
	isAuthorized bool
}

// RecvMsg receives a message.
func (s *authorizedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil || s.isAuthorized {
		return err
	}
	if err := s.interceptors.authorizeCall(s.Context(), s.method, m); err != nil {
		return err
	}
	s.isAuthorized = true
	return nil
}
