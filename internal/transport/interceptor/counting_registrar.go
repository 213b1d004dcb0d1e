package interceptor

import (
	"context"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// receiveMessage receives a message with the function that gRPC gives.
func (i *Interceptors) receiveMessage(ctx context.Context, into any, receive func(any) error) error {
	message, ok := into.(protobuf.Message)
	if !ok {
		return receive(into)
	}
	return i.receiver.ReceiveMessage(message, flow.TrackedRequestOf(ctx), i.maxMessageBytes, receive)
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
	known := *service
	known.Methods = slices.Clone(service.Methods)
	for i := range known.Methods {
		handle, name := known.Methods[i].Handler, "/"+known.ServiceName+"/"+known.Methods[i].MethodName
		known.Methods[i].Handler = func(
			srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			return handle(srv, ctx, func(into any) error {
				return r.interceptors.refuseEarly(ctx, name, r.interceptors.receiveMessage(ctx, into, decode))
			}, interceptor)
		}
	}
	r.ServiceRegistrar.RegisterService(&known, implementation)
}
