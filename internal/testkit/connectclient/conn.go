// Package connectclient calls services over the Connect protocol with its official client, so that
// a test that has a gRPC connection can make the same calls over HTTP.
package connectclient

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect"
	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // types of details
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Conn makes calls over HTTP. The metadata of a call's context become headers.
type Conn struct {
	URL    string
	Client *http.Client
	// Options choose what the official client sends, like connect.WithProtoJSON or connect.WithGRPCWeb.
	Options []connect.ClientOption
}

var _ grpc.ClientConnInterface = (*Conn)(nil)

// Invoke makes a unary call.
func (c *Conn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	client, request, err := c.prepareCall(ctx, method, args)
	if err != nil {
		return err
	}
	answer, err := client.CallUnary(ctx, request)
	if err != nil {
		return toStatus(err)
	}
	return copyMessage(answer.Msg, reply)
}

// NewStream begins a call with a stream of answers. It is made when its request is sent.
func (c *Conn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &clientStream{conn: c, ctx: ctx, method: method}, nil
}

// prepareCall returns what makes a call.
func (c *Conn) prepareCall(ctx context.Context, method string, args any) (
	*connect.Client[dynamicpb.Message, dynamicpb.Message], *connect.Request[dynamicpb.Message], error,
) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, nil, err
	}
	known, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, nil, status.Errorf(codes.Internal, "%s is no method", method)
	}
	initialize := func(_ connect.Spec, message any) error {
		if m, ok := message.(*dynamicpb.Message); ok {
			*m = *dynamicpb.NewMessage(known.Output())
		}
		return nil
	}
	options := append([]connect.ClientOption{connect.WithSchema(known), connect.WithResponseInitializer(initialize)}, c.Options...)
	in := dynamicpb.NewMessage(known.Input())
	if err := copyMessage(args, in); err != nil {
		return nil, nil, err
	}
	request := connect.NewRequest(in)
	given, _ := metadata.FromOutgoingContext(ctx)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		for _, value := range given[key] {
			request.Header().Add(key, value)
		}
	}
	return connect.NewClient[dynamicpb.Message, dynamicpb.Message](c.Client, c.URL+method, options...), request, nil
}

// copyMessage copies a message into one of the same type by name.
func copyMessage(from, into any) error {
	source, isSource := from.(proto.Message)
	target, isTarget := into.(proto.Message)
	if !isSource || !isTarget {
		return status.Errorf(codes.Internal, "%T to %T are no messages", from, into)
	}
	text, err := proto.Marshal(source)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return proto.Unmarshal(text, target)
}

// toStatus returns the status of an error of the official client.
func toStatus(err error) error {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	st := status.New(codes.Code(e.Code()), e.Message())
	for _, d := range e.Details() {
		value, err := d.Value()
		if err != nil {
			return err
		}
		if st, err = st.WithDetails(protoadapt.MessageV1Of(value)); err != nil {
			return err
		}
	}
	return st.Err()
}

// clientStream is a call with a stream of answers.
type clientStream struct {
	conn    *Conn
	ctx     context.Context //nolint:containedctx // of the call
	method  string
	answers *connect.ServerStreamForClient[dynamicpb.Message]
}

// SendMsg makes the call.
func (s *clientStream) SendMsg(m any) error {
	client, request, err := s.conn.prepareCall(s.ctx, s.method, m)
	if err != nil {
		return err
	}
	s.answers, err = client.CallServerStream(s.ctx, request)
	if err != nil {
		return toStatus(err)
	}
	return nil
}

// RecvMsg reads the next answer. The error is io.EOF after the last one.
func (s *clientStream) RecvMsg(m any) error {
	if s.answers == nil {
		return status.Error(codes.Internal, "no request was sent")
	}
	if !s.answers.Receive() {
		if err := s.answers.Err(); err != nil {
			return toStatus(err)
		}
		return io.EOF
	}
	return copyMessage(s.answers.Msg(), m)
}

// Header returns the headers of the response.
func (s *clientStream) Header() (metadata.MD, error) {
	md := metadata.MD{}
	for key, values := range s.answers.ResponseHeader() {
		md.Append(key, values...)
	}
	return md, nil
}

// Trailer returns nothing.
func (*clientStream) Trailer() metadata.MD { return nil }

// CloseSend does nothing: the request has one message.
func (*clientStream) CloseSend() error { return nil }

// Context returns the context of the call.
func (s *clientStream) Context() context.Context { return s.ctx }
