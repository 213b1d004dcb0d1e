package transport

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// encodedMessage is an encoded message. Several streams may send it.
type encodedMessage struct {
	bytes        []byte
	data         mem.BufferSlice // the bytes as gRPC takes them
	pendingSends int             // sendings that are not written yet; guarded by unread.mu
}

// isSmall reports whether gRPC does not report when it has written the message.
func (f *encodedMessage) isSmall() bool { return mem.IsBelowBufferPoolingThreshold(cap(f.bytes)) }

// isLarge reports whether a message counts from its queueing on, before gRPC has
// it: many.
func (f *encodedMessage) isLarge() bool { return len(f.bytes) >= largeMessageBytes }

const largeMessageBytes = 64 << 10

// heldSize is the number of bytes that count as unread. Most of a small message is
// what gRPC keeps around it, once per send.
func (f *encodedMessage) heldSize() int64 {
	if f.isSmall() {
		return int64(len(f.bytes)) + queuedOverhead
	}
	return int64(len(f.bytes))
}

// queuedOverhead is about how many bytes of memory gRPC needs for a message that waits to
// be written.
const queuedOverhead = 384

// encodedCodec is the codec of protobuf, which also accepts encoded messages.
type encodedCodec struct {
	encoding.CodecV2

	pooledEmpty []byte // without bytes, but with a capacity that gRPC takes for a pool's
}

// encodeMessage encodes a message.
func encodeMessage(m protobuf.Message) (*encodedMessage, error) {
	bytes, err := protobuf.Marshal(m)
	if err != nil {
		return nil, runtime.Errorf(runtime.ReasonInternal, "a message can't be encoded").WithCause(err)
	}
	return newFrame(bytes), nil
}

func newFrame(bytes []byte) *encodedMessage {
	return &encodedMessage{bytes: bytes, data: mem.BufferSlice{mem.SliceBuffer(bytes)}}
}

// sendSize is the number of bytes that gRPC sends for the message.
func (f *encodedMessage) sendSize() int { return len(f.bytes) + framingOverhead }

// framingOverhead is more than gRPC adds to a message.
const framingOverhead = 64

func newEncodedCodec() encodedCodec {
	return encodedCodec{encoding.GetCodecV2(proto.Name), make([]byte, 0, 64<<10)}
}

// Marshal passes an encoded message on.
func (c encodedCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *encodedMessage:
		return m.data, nil
	case *countedMessage:
		if !m.isCounted {
			m.unread.holdMessage(m.encodedMessage)
		}
		if m.isSmall() { // gRPC does not say when it is done with those, but lets go of what is behind as well
			m.parts = [2]mem.Buffer{m.data[0], mem.NewBuffer(&c.pooledEmpty, m)}
			return m.parts[:], nil
		}
		m.parts[0] = mem.NewBuffer(&m.bytes, m)
		return m.parts[:1], nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes a message, or leaves one alone that is too large.
func (c encodedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*boundedMessage); ok {
		return m.decodeBytes(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// encodedEvents keeps the newest events that several streams send in their encoded
// form: each is encoded once.
type encodedEvents struct {
	mu             sync.Mutex
	byKey          map[encodedEventKey]*encodedMessage
	insertionOrder [maxEncodedEvents]encodedEventKey // keys in the order of insertion
	oldestIndex    int                               // where the ring begins
	count          int
	totalBytes     int // of all
}

// encodedEventKey is what an encoded event depends on. Events are shared by all
// followers of a thread and never change.
type encodedEventKey struct {
	event               *checkpoint.Event
	mark                uint32 // in the cursor
	hasCheckpointValues bool   // whether checkpoints come with values
}

// What is kept; what is larger is encoded for each stream.
const (
	maxEncodedEvents     = 256
	maxEncodedEventBytes = 1 << 20
	maxEncodedBytes      = 4 << 20
)

func newEncodedEvents() *encodedEvents {
	return &encodedEvents{byKey: make(map[encodedEventKey]*encodedMessage, maxEncodedEvents)}
}

func (c *encodedEvents) findEvent(k encodedEventKey) *encodedMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[k]
}

// addEvent adds an encoded event, and drops the oldest ones.
func (c *encodedEvents) addEvent(k encodedEventKey, f *encodedMessage) {
	if len(f.bytes) > maxEncodedEventBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[k] != nil {
		return
	}
	for c.count > 0 && (c.count == maxEncodedEvents || c.totalBytes+len(f.bytes) > maxEncodedBytes) {
		oldest := c.insertionOrder[c.oldestIndex]
		c.totalBytes -= len(c.byKey[oldest].bytes)
		delete(c.byKey, oldest)
		c.insertionOrder[c.oldestIndex] = encodedEventKey{}
		c.oldestIndex, c.count = (c.oldestIndex+1)%maxEncodedEvents, c.count-1
	}
	c.byKey[k], c.insertionOrder[(c.oldestIndex+c.count)%maxEncodedEvents] = f, k
	c.count++
	c.totalBytes += len(f.bytes)
}
