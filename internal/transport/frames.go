package transport

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// frame is a message that is encoded already. Many streams may send it.
type frame struct{ bytes []byte }

// framing is the codec of protobuf, which also takes frames.
type framing struct{ encoding.CodecV2 }

func newFraming() framing { return framing{encoding.GetCodecV2(proto.Name)} }

// Marshal takes a frame as it is.
func (c framing) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(f.bytes)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// frames keeps the newest events that several streams show in their encoded
// form: what one of them has encoded the others send as it is.
type frames struct {
	mu   sync.Mutex
	all  map[frameKey]*frame
	ring [maxFrames]frameKey // in the order in which they came
	next int
}

// frameKey is what an encoded event depends on. Events are shared by all who
// follow a thread, and never change.
type frameKey struct {
	event *checkpoint.Event
	mark  uint32 // in the cursor
	debug bool   // whether checkpoints come with values
}

// What is kept, four megabytes at most; what is larger is encoded for each
// stream.
const (
	maxFrames = 256
	maxFrame  = 16 << 10
)

func newFrames() *frames { return &frames{all: make(map[frameKey]*frame, maxFrames)} }

func (c *frames) find(k frameKey) *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[k]
}

// keep encodes an event, and drops the oldest ones. It returns what is to be
// sent: the event itself where encoding it fails.
func (c *frames) keep(k frameKey, e *graphdv1.Event) any {
	bytes, err := protobuf.Marshal(e)
	if err != nil {
		return e
	}
	f := &frame{bytes}
	if len(bytes) > maxFrame {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[k] == nil {
		delete(c.all, c.ring[c.next])
		c.all[k], c.ring[c.next] = f, k
		c.next = (c.next + 1) % maxFrames
	}
	return f
}
