package flow

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// EncodedMessage is an encoded message. Several streams may send it.
type EncodedMessage struct {
	Bytes        []byte
	data         [1]mem.Buffer // the bytes as gRPC takes them
	pendingSends int           // sends that gRPC has not written yet; guarded by UnreadTracker.mu
}

// isSmall reports whether the message is below gRPC's threshold for pooled buffers.
// gRPC does not report when it has written such a message.
func (e *EncodedMessage) isSmall() bool { return mem.IsBelowBufferPoolingThreshold(cap(e.Bytes)) }

// IsLarge reports whether the message counts as unread as soon as it is queued. A
// smaller message counts when gRPC has it.
func (e *EncodedMessage) IsLarge() bool { return len(e.Bytes) >= LargeMessageBytes }

// LargeMessageBytes is the size from which a message is large.
const LargeMessageBytes = 64 << 10

// heldSize returns the number of bytes that count as unread. Most of a small
// message is the overhead of gRPC, once per send.
func (e *EncodedMessage) heldSize() int64 {
	if e.isSmall() {
		return int64(len(e.Bytes)) + queuedOverhead
	}
	return int64(len(e.Bytes))
}

// queuedOverhead is about the number of bytes that gRPC needs for a message that
// waits to be written.
const queuedOverhead = 384

// Codec is the codec of protobuf, which also accepts encoded messages.
type Codec struct {
	encoding.CodecV2

	pooledEmpty *[]byte // no bytes, but the capacity of a buffer that gRPC takes for pooled
}

// EncodeMessage encodes a message.
func EncodeMessage(m protobuf.Message) (*EncodedMessage, error) {
	bytes, err := protobuf.Marshal(m)
	if err != nil {
		return nil, runtime.Errorf(runtime.ReasonInternal, "a message can't be encoded").WithCause(err)
	}
	return NewEncodedMessage(bytes), nil
}

// NewEncodedMessage makes an EncodedMessage of the bytes of a message. It keeps the
// slice: the caller must not change it, because gRPC reads it with every send.
func NewEncodedMessage(bytes []byte) *EncodedMessage {
	return &EncodedMessage{Bytes: bytes, data: [1]mem.Buffer{mem.SliceBuffer(bytes)}}
}

// SendSize returns the number of bytes that gRPC sends for the message.
func (e *EncodedMessage) SendSize() int { return len(e.Bytes) + framingOverhead }

// framingOverhead is more than the bytes that gRPC adds to a message.
const framingOverhead = 64

// NewCodec makes the codec of servers and of clients towards endpoints.
func NewCodec() Codec {
	empty := make([]byte, 0, 64<<10)
	return Codec{encoding.GetCodecV2(proto.Name), &empty}
}

// Marshal returns the bytes of an encoded message, and encodes any other message.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *EncodedMessage:
		return m.data[:], nil
	case *countedMessage:
		if !m.isCounted {
			m.unread.HoldMessage(m.EncodedMessage)
		}
		if m.isSmall() { // gRPC does not report the end of small writes, but releases the buffers behind them as well
			m.parts = [2]mem.Buffer{m.data[0], mem.NewBuffer(c.pooledEmpty, m)}
			return m.parts[:], nil
		}
		m.parts[0] = mem.NewBuffer(&m.Bytes, m)
		return m.parts[:1], nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes a message, and skips a message that is too large.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*boundedMessage); ok {
		return m.decodeBytes(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}
