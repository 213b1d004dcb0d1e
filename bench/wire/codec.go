// Package wire carries gRPC messages as bytes, so that the measuring
// program spends no time on decoding. It reads only the fields by which it
// detects missing messages.
package wire

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Frame is one received message. Its memory is used again by the next.
type Frame struct{ Bytes []byte }

// Codec passes []byte to the wire and fills a *Frame from it.
type Codec struct{}

// Name is that of protobuf, which the bytes are.
func (Codec) Name() string { return "proto" }

// Marshal takes a []byte, which must not change until it is sent, or a message.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case []byte:
		return mem.BufferSlice{mem.SliceBuffer(v)}, nil
	case proto.Message:
		b, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	default:
		return nil, fmt.Errorf("wire: cannot send a %T, only bytes or a message", v)
	}
}

// Unmarshal fills a *Frame.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*Frame)
	if !ok {
		return fmt.Errorf("wire: cannot receive into a %T, only *Frame", v)
	}
	size := data.Len()
	if cap(f.Bytes) < size {
		f.Bytes = make([]byte, size)
	}
	f.Bytes = f.Bytes[:size]
	data.CopyTo(f.Bytes)
	return nil
}

// Calls makes a connection send and receive bytes.
func Calls() grpc.DialOption { return grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Codec{})) }
