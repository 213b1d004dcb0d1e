package interceptor

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// receiveMessage receives a message with the function that gRPC gives. A message that can't
// be read is an error of the client, and not of the server as for gRPC. Where not even the
// frame of the message can be read, gRPC has answered the client already.
func (i *Interceptors) receiveMessage(ctx context.Context, into any, receive func(any) error) error {
	message, ok := into.(protobuf.Message)
	if !ok {
		return receive(into)
	}
	err := i.receiver.ReceiveMessage(message, flow.TrackedRequestOf(ctx), i.maxMessageBytes, receive)
	if invalid, ok := errors.AsType[*flow.DecodeError](err); ok {
		return runtime.Errorf(runtime.ReasonInvalidField,
			"the message can't be decoded: want a %s in the encoding of protobuf, with texts in UTF-8", invalid.Message).WithCause(err)
	}
	if status.Code(err) == codes.Internal {
		return runtime.Errorf(runtime.ReasonInvalidField,
			"the message can't be read: want a whole message as gRPC frames it, compressed as the header grpc-encoding says").WithCause(err)
	}
	return err
}

// receiveUnary receives the request of a unary call, before its interceptors run. Without
// credentials a client does not learn what is wrong with its request.
func (i *Interceptors) receiveUnary(ctx context.Context, method string, into any, decode func(any) error) error {
	err := i.receiveMessage(ctx, into, decode)
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonInvalidField}) {
		if refused := i.checkCaller(ctx); refused != nil {
			err = refused
		}
	}
	return i.refuseEarly(ctx, method, err)
}

// refuseEarly converts the error of a request that was not decoded, before its call has
// begun, and records the call. It logs only errors that are not the caller's.
func (i *Interceptors) refuseEarly(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	end, err := i.errorMapper.ToStatus(err, nil)
	i.audit.newCall(method).finishRecord(ctx, nil, err)
	if entry := i.log.Check(end.Level, "refused request"); entry != nil && end.Level > zapcore.InfoLevel {
		entry.Write(append(end.Fields, zap.String("grpc.error", err.Error()))...)
	}
	return err
}

// countingRegistrar registers services whose requests are counted before they are
// decoded. The interceptor of streams counts the messages of streams.
type countingRegistrar struct {
	grpc.ServiceRegistrar

	interceptors *Interceptors
}

// WrapRegistrar counts the requests of services before they are decoded.
func (i *Interceptors) WrapRegistrar(r grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	return countingRegistrar{r, i}
}

// RegisterService registers a service.
func (r countingRegistrar) RegisterService(service *grpc.ServiceDesc, implementation any) {
	r.interceptors.unaryMethods.addService(service, implementation)
	known := *service
	known.Methods = slices.Clone(service.Methods)
	for i := range known.Methods {
		handle, name := known.Methods[i].Handler, "/"+known.ServiceName+"/"+known.Methods[i].MethodName
		known.Methods[i].Handler = func(
			srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			return handle(srv, ctx, func(into any) error {
				return r.interceptors.receiveUnary(ctx, name, into, decode)
			}, interceptor)
		}
	}
	r.ServiceRegistrar.RegisterService(&known, implementation)
}
