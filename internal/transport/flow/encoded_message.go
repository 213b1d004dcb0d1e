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
	pendingSends int           // sendings that are not written yet; guarded by unread.mu
}

// isSmall reports whether gRPC does not report when it has written the message.
func (f *EncodedMessage) isSmall() bool { return mem.IsBelowBufferPoolingThreshold(cap(f.Bytes)) }

// IsLarge reports whether a message counts from its queueing on, before gRPC has
// it: many.
func (f *EncodedMessage) IsLarge() bool { return len(f.Bytes) >= LargeMessageBytes }

// LargeMessageBytes is from how many bytes on a message is large.
const LargeMessageBytes = 64 << 10

// heldSize is the number of bytes that count as unread. Most of a small message is
// what gRPC keeps around it, once per send.
func (f *EncodedMessage) heldSize() int64 {
	if f.isSmall() {
		return int64(len(f.Bytes)) + queuedOverhead
	}
	return int64(len(f.Bytes))
}

// queuedOverhead is about how many bytes of memory gRPC needs for a message that waits to
// be written.
const queuedOverhead = 384

// Codec is the codec of protobuf, which also accepts encoded messages.
type Codec struct {
	encoding.CodecV2

	pooledEmpty *[]byte // without bytes, but with a capacity that gRPC takes for a pool's
}

// EncodeMessage encodes a message.
func EncodeMessage(m protobuf.Message) (*EncodedMessage, error) {
	bytes, err := protobuf.Marshal(m)
	if err != nil {
		return nil, runtime.Errorf(runtime.ReasonInternal, "a message can't be encoded").WithCause(err)
	}
	return NewEncodedMessage(bytes), nil
}

// NewEncodedMessage makes an EncodedMessage of the bytes of a message.
func NewEncodedMessage(bytes []byte) *EncodedMessage {
	return &EncodedMessage{Bytes: bytes, data: [1]mem.Buffer{mem.SliceBuffer(bytes)}}
}

// SendSize is the number of bytes that gRPC sends for the message.
func (f *EncodedMessage) SendSize() int { return len(f.Bytes) + framingOverhead }

// framingOverhead is more than gRPC adds to a message.
const framingOverhead = 64

// NewCodec makes the codec of servers and of clients towards endpoints.
func NewCodec() Codec {
	empty := make([]byte, 0, 64<<10)
	return Codec{encoding.GetCodecV2(proto.Name), &empty}
}

// Marshal passes an encoded message on.
func (c Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *EncodedMessage:
		return m.data[:], nil
	case *countedMessage:
		if !m.isCounted {
			m.unread.HoldMessage(m.EncodedMessage)
		}
		if m.isSmall() { // gRPC does not say when it is done with those, but releases what is behind as well
			m.parts = [2]mem.Buffer{m.data[0], mem.NewBuffer(c.pooledEmpty, m)}
			return m.parts[:], nil
		}
		m.parts[0] = mem.NewBuffer(&m.Bytes, m)
		return m.parts[:1], nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes a message, or leaves one alone that is too large.
func (c Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*boundedMessage); ok {
		return m.decodeBytes(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}
