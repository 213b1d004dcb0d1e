package flow

import (
	"fmt"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// boundedMessage is a message that is about to be decoded. It is decoded only after
// its size in memory was counted.
type boundedMessage struct {
	target          protobuf.Message
	request         *TrackedRequest // nil = not counted
	maxMemory       int             // bytes of memory, 0 = any number
	maxMessageBytes int             // bytes that a message may have
	layouts         *layoutCache
	refusal         error // why it was not decoded
}

// decodeBytes decodes the bytes of a message.
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
	if err := protobuf.Unmarshal(bytes, m.target); err != nil {
		m.refusal = &DecodeError{string(m.target.ProtoReflect().Descriptor().FullName()), err}
	}
	return nil // gRPC would answer the client itself
}

// DecodeError says that the bytes of a message are not those of its type.
type DecodeError struct {
	Message string // the type, like graphd.v1.StartRunRequest
	Cause   error
}

// Error returns the type and the cause.
func (e *DecodeError) Error() string { return fmt.Sprintf("decoding a %s: %v", e.Message, e.Cause) }

// GRPCStatus returns the code that gRPC has for such a message.
func (e *DecodeError) GRPCStatus() *status.Status { return status.New(codes.Internal, e.Error()) }

// memoryFactor is the ratio of memory to bytes on the wire that a message may have.
const memoryFactor = 4

// MessageReceiver receives messages, and refuses those that would take much more
// memory than they have bytes. Its zero value is ready.
type MessageReceiver struct{ layouts layoutCache }

// ReceiveMessage receives a message with the function that gRPC gives, and returns
// why it was not decoded: the error of gRPC, a *runtime.Error, or a *DecodeError. request is
// the request of the message, nil when it is not counted.
func (r *MessageReceiver) ReceiveMessage(
	into protobuf.Message, request *TrackedRequest, maxBytes int, receive func(any) error,
) error {
	m := &boundedMessage{
		target: into, request: request, maxMemory: memoryFactor*maxBytes + 64<<10, maxMessageBytes: maxBytes, layouts: &r.layouts,
	}
	if err := receive(m); err != nil {
		return err
	}
	return m.refusal
}
