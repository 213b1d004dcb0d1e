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

// frame is a message that is encoded already. Many streams may send it.
type frame struct {
	bytes   []byte
	holders int // sendings that are not written yet; guarded by unread.mu
}

// small reports whether gRPC does not say when it is done with a frame.
func (f *frame) small() bool { return mem.IsBelowBufferPoolingThreshold(cap(f.bytes)) }

// isLarge reports whether a frame counts when it is handed over, before gRPC has it: of
// those that are small many may be on the way at the same time.
func (f *frame) isLarge() bool { return len(f.bytes) >= largeFrame }

const largeFrame = 64 << 10

// weight is what counts of a frame. A small one is mostly what gRPC puts around
// it, for each sending anew.
func (f *frame) weight() int64 {
	if f.small() {
		return int64(len(f.bytes)) + queued
	}
	return int64(len(f.bytes))
}

// queued is about how many bytes of memory gRPC needs for a message that waits to
// be written.
const queued = 384

// framing is the codec of protobuf, which also takes frames.
type framing struct {
	encoding.CodecV2

	nothing []byte // without bytes, but with a capacity that gRPC takes for a pool's
}

// encode makes a frame of a message.
func encode(m protobuf.Message) (*frame, error) {
	bytes, err := protobuf.Marshal(m)
	if err != nil {
		return nil, runtime.Errorf(runtime.ReasonInternal, "a message can't be encoded").Because(err)
	}
	return &frame{bytes: bytes}, nil
}

// size is how many bytes a frame takes, with what gRPC puts around it.
func (f *frame) size() int { return len(f.bytes) + around }

// around is more than gRPC puts around a message.
const around = 64

func newFraming() framing { return framing{encoding.GetCodecV2(proto.Name), make([]byte, 0, 64<<10)} }

// Marshal takes a frame as it is.
func (c framing) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case *frame:
		return mem.BufferSlice{mem.SliceBuffer(m.bytes)}, nil
	case *parcel:
		if !m.counted {
			m.outlet.hold(m.frame)
		}
		if m.small() { // gRPC does not say when it is done with those, but lets go of what is behind as well
			return mem.BufferSlice{mem.SliceBuffer(m.bytes), mem.NewBuffer(&c.nothing, m)}, nil
		}
		return mem.BufferSlice{mem.NewBuffer(&m.bytes, m)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal decodes a message, or leaves one alone that is too large.
func (c framing) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*incoming); ok {
		return m.decode(data)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// frames keeps the newest events that several streams show in their encoded
// form: what one of them has encoded the others send as it is.
type frames struct {
	mu     sync.Mutex
	all    map[frameKey]*frame
	ring   [maxFrames]frameKey // in the order in which they came
	oldest int                 // where the ring begins
	count  int
	bytes  int // of all
}

// frameKey is what an encoded event depends on. Events are shared by all who
// follow a thread, and never change.
type frameKey struct {
	event *checkpoint.Event
	mark  uint32 // in the cursor
	debug bool   // whether checkpoints come with values
}

// What is kept; what is larger is encoded for each stream.
const (
	maxFrames     = 256
	maxFrame      = 1 << 20
	maxFrameBytes = 4 << 20
)

func newFrames() *frames { return &frames{all: make(map[frameKey]*frame, maxFrames)} }

func (c *frames) find(k frameKey) *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[k]
}

// keep adds an encoded event, and drops the oldest ones.
func (c *frames) keep(k frameKey, f *frame) {
	if len(f.bytes) > maxFrame {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[k] != nil {
		return
	}
	for c.count > 0 && (c.count == maxFrames || c.bytes+len(f.bytes) > maxFrameBytes) {
		oldest := c.ring[c.oldest]
		c.bytes -= len(c.all[oldest].bytes)
		delete(c.all, oldest)
		c.ring[c.oldest] = frameKey{}
		c.oldest, c.count = (c.oldest+1)%maxFrames, c.count-1
	}
	c.all[k], c.ring[(c.oldest+c.count)%maxFrames] = f, k
	c.count++
	c.bytes += len(f.bytes)
}
