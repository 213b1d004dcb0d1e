package transport

import (
	"context"
	"slices"
	"strconv"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// incoming is a message that is about to be decoded: what it would take in
// memory is counted, or it is left alone.
type incoming struct {
	into    protobuf.Message
	call    *request // nil = not counted
	most    int      // bytes of memory, 0 = any number
	message int      // bytes that a message may have
	shapes  *shapes
	refused error // why it was left alone
}

// decode takes in the bytes of a message.
func (m *incoming) decode(data mem.BufferSlice) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	bytes := buffer.ReadOnlyData()
	most := m.most
	if most == 0 {
		most = int(^uint(0) >> 1)
	}
	size := m.shapes.decodedSize(m.into.ProtoReflect().Descriptor(), bytes, most)
	if size > most {
		m.refused = runtime.Errorf(runtime.ReasonPayloadTooLarge,
			"the message has %d bytes, of so many parts that it would take more than %d bytes of memory; send fewer at a time",
			len(bytes), most).With("sizeBytes", strconv.Itoa(len(bytes))).With("limitBytes", strconv.Itoa(most)).
			Beyond("max-message", int64(m.message), 0)
		return nil
	}
	if m.refused = m.call.charge(len(bytes), size); m.refused != nil {
		return nil
	}
	return protobuf.Unmarshal(bytes, m.into)
}

// inMemory is how much more memory than bytes on the wire a message may take.
const inMemory = 4

// receive receives a message by way of what gRPC gives for it.
func (d *desk) receive(ctx context.Context, into any, by func(any) error) error {
	message, ok := into.(protobuf.Message)
	if !ok {
		return by(into)
	}
	m := &incoming{
		into: message, call: requestOf(ctx), most: inMemory*d.maxMessage + 64<<10, message: d.maxMessage, shapes: &d.shapes,
	}
	if err := by(m); err != nil {
		return err
	}
	return m.refused
}

// refuseEarly converts what is wrong with a request that was not decoded, before
// its call has begun. Only what is more than the caller's is logged.
func (d *desk) refuseEarly(err error) error {
	end, err := d.mapper.status(err, nil)
	if entry := d.log.Check(end.level, "refused request"); entry != nil && end.level > zapcore.InfoLevel {
		entry.Write(append(end.fields, zap.String("grpc.error", err.Error()))...)
	}
	return err
}

// reception registers services whose requests are counted before they are
// decoded. Those of streams are where they are received.
type reception struct {
	grpc.ServiceRegistrar

	desk *desk
}

// RegisterService registers a service.
func (r reception) RegisterService(service *grpc.ServiceDesc, implementation any) {
	known := *service
	known.Methods = slices.Clone(service.Methods)
	for i := range known.Methods {
		handle := known.Methods[i].Handler
		known.Methods[i].Handler = func(
			srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			return handle(srv, ctx, func(into any) error {
				return r.desk.refuseEarly(r.desk.receive(ctx, into, decode))
			}, interceptor)
		}
	}
	r.ServiceRegistrar.RegisterService(&known, implementation)
}
