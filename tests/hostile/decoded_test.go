package hostile_test

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// partCount is how many empty parts fit in a message: two bytes each on the wire,
// and a hundred in memory.
const partCount = 4_000_000

// emptyParts are messages of nothing but empty parts. They are written as bytes: the
// attacker is not to be busier than the server.
func emptyParts(ctx context.Context, a *attack) {
	responses := repeatPart(&graphdv1.ResumeSpec{Responses: []*graphdv1.InterruptResponse{{}}})
	thread := encodeBytes(&graphdv1.ResumeSpec{ThreadId: "watched"})
	a.sendBytes(ctx, graphdv1.GraphService_ResumeRun_FullMethodName, wrapPart(&graphdv1.ResumeRunRequest{}, "resume", append(thread, responses...)))

	nodes := repeatPart(&graphdv1.GraphSpec{Nodes: []*graphdv1.NodeSpec{{}}})
	a.sendBytes(ctx, graphdv1.RegistryService_PutGraph_FullMethodName, wrapPart(&graphdv1.PutGraphRequest{}, "spec", nodes))
}

// repeatPart writes the one part of a message partCount times.
func repeatPart(m proto.Message) []byte {
	return bytes.Repeat(encodeBytes(m), partCount)
}

func encodeBytes(m proto.Message) []byte {
	text, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text
}

// wrapPart writes a message that has only this field.
func wrapPart(m proto.Message, field protoreflect.Name, value []byte) []byte {
	number := m.ProtoReflect().Descriptor().Fields().ByName(field).Number()
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// sendBytes calls a method with a message that is bytes already.
func (a *attack) sendBytes(ctx context.Context, method string, message []byte) {
	err := a.client.Conn.Invoke(ctx, method, message, &struct{}{}, grpc.ForceCodec(encodedMessages{}))
	a.recordAnswer(method, err)
}

// encodedMessages takes messages that are bytes already, and drops what is answered.
type encodedMessages struct{}

func (encodedMessages) Marshal(m any) ([]byte, error) {
	message, ok := m.([]byte)
	if !ok {
		return nil, fmt.Errorf("a %T, want bytes", m)
	}
	return message, nil
}

func (encodedMessages) Unmarshal([]byte, any) error { return nil }

func (encodedMessages) Name() string { return "proto" }
