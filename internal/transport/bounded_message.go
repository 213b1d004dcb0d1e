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

// boundedMessage is a message that is about to be decoded: its size in memory is
// counted, or it is not decoded.
type boundedMessage struct {
	target          protobuf.Message
	request         *trackedRequest // nil = not counted
	maxMemory       int             // bytes of memory, 0 = any number
	maxMessageBytes int             // bytes that a message may have
	layouts         *layoutCache
	refusal         error // why it was left alone
}

// decodeBytes takes in the bytes of a message.
func (m *boundedMessage) decodeBytes(data mem.BufferSlice) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	bytes := buffer.ReadOnlyData()
	most := m.maxMemory
	if most == 0 {
		most = int(^uint(0) >> 1)
	}
	size := m.layouts.decodedSize(m.target.ProtoReflect().Descriptor(), bytes, most)
	if size > most {
		m.refusal = runtime.Errorf(runtime.ReasonPayloadTooLarge,
			"the message has %d bytes, of so many parts that it would take more than %d bytes of memory; send fewer at a time",
			len(bytes), most).With("sizeBytes", strconv.Itoa(len(bytes))).With("limitBytes", strconv.Itoa(most)).
			WithLimit("max-message", int64(m.maxMessageBytes), 0)
		return nil
	}
	if m.refusal = m.request.countDecoded(len(bytes), size); m.refusal != nil {
		return nil
	}
	return protobuf.Unmarshal(bytes, m.target)
}

// memoryFactor is how much more memory than bytes on the wire a message may take.
const memoryFactor = 4

// receiveMessage receives a message with the function that gRPC gives.
func (d *interceptors) receiveMessage(ctx context.Context, into any, by func(any) error) error {
	message, ok := into.(protobuf.Message)
	if !ok {
		return by(into)
	}
	m := &boundedMessage{
		target: message, request: requestOf(ctx), maxMemory: memoryFactor*d.maxMessageBytes + 64<<10, maxMessageBytes: d.maxMessageBytes, layouts: &d.layouts,
	}
	if err := by(m); err != nil {
		return err
	}
	return m.refusal
}

// logEarlyRefusal converts what is wrong with a request that was not decoded, before
// its call has begun. Only what is more than the caller's is logged.
func (d *interceptors) logEarlyRefusal(err error) error {
	end, err := d.errorMapper.ToStatus(err, nil)
	if entry := d.log.Check(end.Level, "refused request"); entry != nil && end.Level > zapcore.InfoLevel {
		entry.Write(append(end.Fields, zap.String("grpc.error", err.Error()))...)
	}
	return err
}

// countingRegistrar registers services whose requests are counted before they are
// decoded. The interceptor of streams counts theirs.
type countingRegistrar struct {
	grpc.ServiceRegistrar

	interceptors *interceptors
}

// RegisterService registers a service.
func (r countingRegistrar) RegisterService(service *grpc.ServiceDesc, implementation any) {
	known := *service
	known.Methods = slices.Clone(service.Methods)
	for i := range known.Methods {
		handle := known.Methods[i].Handler
		known.Methods[i].Handler = func(
			srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			return handle(srv, ctx, func(into any) error {
				return r.interceptors.logEarlyRefusal(r.interceptors.receiveMessage(ctx, into, decode))
			}, interceptor)
		}
	}
	r.ServiceRegistrar.RegisterService(&known, implementation)
}
