package interceptor

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// unaryMethods are the unary methods of the services of this server, by their full names. They
// are complete when all services are registered, and safe for concurrent use from then on.
type unaryMethods map[string]unaryMethod

// unaryMethod is a method and the service that has it.
type unaryMethod struct {
	handler        func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)
	implementation any
}

// addService adds the unary methods of a service.
func (m unaryMethods) addService(service *grpc.ServiceDesc, implementation any) {
	for _, method := range service.Methods {
		m["/"+service.ServiceName+"/"+method.MethodName] = unaryMethod{method.Handler, implementation}
	}
}

// directCall is a unary call inside the process: it has no connection and no stream of HTTP/2.
type directCall struct {
	interceptors *Interceptors
	method       unaryMethod
	from         *peer.Peer
	headers      metadata.MD     // of the client
	request      mem.BufferSlice // encoded
	stream       directStream
}

// newDirectCall makes a call. It encodes the request, which the client may change afterwards. The
// error is a status. Texts that are not UTF-8 are refused, as over a connection.
func (i *Interceptors) newDirectCall(name string, from *peer.Peer, headers metadata.MD, request any) (*directCall, error) {
	method, ok := i.unaryMethods[name]
	message, isMessage := request.(proto.Message)
	if !ok || !isMessage {
		return nil, status.Errorf(codes.Internal, "no direct call of %s", name)
	}
	encoded, err := proto.Marshal(message)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "encoding the request: %v", err)
	}
	return &directCall{
		interceptors: i, method: method, from: from, headers: headers,
		request: mem.BufferSlice{mem.SliceBuffer(encoded)}, stream: directStream{method: name},
	}, nil
}

// serveCall has the method answer, behind an interceptor. ctx has no values of another call. The
// error is a status. The answer may be a message that others hold, too.
func (d *directCall) serveCall(ctx context.Context, interceptor grpc.UnaryServerInterceptor) (any, error) {
	ctx = grpc.NewContextWithServerTransportStream(ctx, &d.stream)
	ctx = peer.NewContext(ctx, d.from)
	ctx = metadata.NewIncomingContext(ctx, d.headers)
	ctx, endTrace := d.interceptors.traceDirectCall(ctx, d.stream.method)
	answer, err := d.method.handler(d.method.implementation, ctx, func(into any) error {
		return d.interceptors.receiveUnary(ctx, d.stream.method, into, d.decodeRequest)
	}, interceptor)
	err = status.Convert(err).Err()
	if endTrace != nil {
		endTrace(err)
	}
	return answer, err
}

// decodeRequest decodes the request, as gRPC does.
func (d *directCall) decodeRequest(into any) error {
	if size, most := d.request.Len(), d.interceptors.maxMessageBytes; size > most {
		return status.Errorf(codes.ResourceExhausted, "the request has %d bytes; at most %d are allowed", size, most)
	}
	return d.interceptors.codec.Unmarshal(d.request, into)
}

// copyAnswer copies an answer into the message of the client. The answer is not encoded: no
// connection has bytes of it.
func (d *directCall) copyAnswer(into, answer any) error {
	shown, ok := answer.(proto.Message)
	target, isMessage := into.(proto.Message)
	if !ok || !isMessage {
		return status.Errorf(codes.Internal, "%s has no answer", d.stream.method)
	}
	proto.Reset(target)
	proto.Merge(target, shown)
	return nil
}

// directStream is what a handler knows as the stream of its call: the method, and the headers
// that it sends.
type directStream struct {
	method          string // its full name
	header, trailer metadata.MD
}

// Method returns the full name of the method.
func (s *directStream) Method() string { return s.method }

// SetHeader adds to the header.
func (s *directStream) SetHeader(md metadata.MD) error {
	s.header = metadata.Join(s.header, md)
	return nil
}

// SendHeader adds to the header, which goes with the answer.
func (s *directStream) SendHeader(md metadata.MD) error { return s.SetHeader(md) }

// SetTrailer adds to the trailer.
func (s *directStream) SetTrailer(md metadata.MD) error {
	s.trailer = metadata.Join(s.trailer, md)
	return nil
}

// chainUnary returns interceptors as one, the first outermost.
func chainUnary(all []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return callThrough(ctx, req, info, handler, all)
	}
}

func callThrough(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler, all []grpc.UnaryServerInterceptor,
) (any, error) {
	if len(all) == 0 {
		return handler(ctx, req)
	}
	return all[0](ctx, req, info, func(ctx context.Context, req any) (any, error) {
		return callThrough(ctx, req, info, handler, all[1:])
	})
}
