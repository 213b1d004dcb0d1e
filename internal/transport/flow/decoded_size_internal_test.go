package flow

import (
	"math"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// The estimate of a message's memory is within a factor of three, whatever its
// parts are.
func TestDecodedSizeIsAboutWhatAMessageTakes(t *testing.T) {
	const n = 100_000
	labels := make(map[string]string, n)
	for i := range n {
		labels[strings.Repeat("k", i%7)+string(rune('a'+i%26))+string(rune(0x4e00+i%20000))+string(rune(0x4e00+i/20000))] = ""
	}
	nodes := make([]*graphdv1.NodeSpec, n)
	responses := make([]*graphdv1.InterruptResponse, n)
	for i := range n {
		nodes[i], responses[i] = &graphdv1.NodeSpec{}, &graphdv1.InterruptResponse{}
	}
	for name, m := range map[string]proto.Message{
		"empty messages": &graphdv1.ResumeSpec{Responses: responses},
		"large messages": &graphdv1.GraphSpec{Nodes: nodes},
		"empty texts":    &graphdv1.GraphSpec{Input: make([]string, n)},
		"numbers":        &graphdv1.EventFilter{Channels: make([]graphdv1.Channel, n)},
		"a map":          &graphdv1.Thread{Metadata: labels},
		"one text":       &graphdv1.GraphSpec{Description: strings.Repeat("x", 10*n)},
	} {
		bytes, err := proto.Marshal(m)
		require.NoError(t, err)
		estimate := new(layoutCache).decodedSize(m.ProtoReflect().Descriptor(), bytes, math.MaxInt)
		// Garbage of other tests is freed at any time and disturbs an attempt.
		var taken int
		for range 10 {
			if taken = measureDecoded(t, m, bytes); estimate < 3*taken && taken < 3*estimate {
				break
			}
		}
		t.Logf("%s: %d bytes, estimated %d, taken %d", name, len(bytes), estimate, taken)
		require.Greater(t, 3*estimate, taken, name)
		require.Less(t, estimate, 3*taken, name)
	}
}

// measureDecoded measures the growth of the heap when a message is decoded.
func measureDecoded(t *testing.T, m proto.Message, bytes []byte) int {
	t.Helper()
	into := m.ProtoReflect().New().Interface()
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	require.NoError(t, proto.Unmarshal(bytes, into))
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	goruntime.KeepAlive([]any{into, bytes, m})
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

// Each message of the contract can be estimated, also a broken one.
func TestDecodedSizeOfAnything(t *testing.T) {
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		d := kind.Descriptor()
		require.Positive(t, new(layoutCache).decodedSize(d, nil, math.MaxInt), d.FullName())
		for b := range 256 {
			new(layoutCache).decodedSize(d, []byte{byte(b), byte(b), byte(b), 1, byte(b)}, math.MaxInt)
		}
		return true
	})
}
