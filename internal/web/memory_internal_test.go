package web

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

func TestSmallMessagesGoOnBesideLargeOnes(t *testing.T) {
	m := &memory{most: 1 << 20}
	alone := reserved{of: m}
	require.True(t, alone.grow(2<<20), "one alone may have any size")
	other := reserved{of: m}
	require.False(t, other.grow(1))
	alone.release()

	require.True(t, alone.grow(m.largest()))
	require.False(t, other.grow(smallBytes+1))
	for range (m.most - m.largest()) / smallBytes {
		small := reserved{of: m}
		require.True(t, small.grow(smallBytes))
	}
	require.False(t, other.grow(1))
	alone.release()
	require.True(t, other.grow(1))
}

// No message without values takes more than it is counted as.
func TestMessagesAreNotLargerThanTheyAreCounted(t *testing.T) {
	seen := map[protoreflect.FullName]bool{}
	var look func(d protoreflect.MessageDescriptor)
	look = func(d protoreflect.MessageDescriptor) {
		if seen[d.FullName()] {
			return
		}
		seen[d.FullName()] = true
		if m, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName()); err == nil {
			require.LessOrEqual(t, reflect.TypeOf(m.Zero().Interface()).Elem().Size(), uintptr(messageBytes), d.FullName())
		}
		for i := range d.Fields().Len() {
			if inside := d.Fields().Get(i).Message(); inside != nil {
				look(inside)
			}
		}
	}
	for _, s := range Services() {
		for i := range s.Methods().Len() {
			look(s.Methods().Get(i).Input())
		}
	}
	require.Greater(t, len(seen), 50)
}

func TestEstimatesOfMemory(t *testing.T) {
	text := func(c *messageCodec, m proto.Message) []byte {
		text, err := c.appendTo(nil, m)
		require.NoError(t, err)
		return text
	}
	many := make([]*graphdv1.InterruptResponse, 20_000)
	for i := range many {
		many[i] = &graphdv1.InterruptResponse{}
	}
	inputs := map[string]*graphdv1.ResumeRunRequest{
		"empty messages": {Resume: &graphdv1.ResumeSpec{Responses: many}},
		"a long text":    {Resume: &graphdv1.ResumeSpec{ThreadId: strings.Repeat(`{,[\"`, 100_000)}},
	}
	for name, in := range inputs {
		for _, c := range messageCodecs() {
			given := text(c, in)
			estimated := c.estimate(given, in.ProtoReflect().Descriptor())
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			out := &graphdv1.ResumeRunRequest{}
			require.NoError(t, c.unmarshal(given, out))
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.GreaterOrEqual(t, estimated, int64(after.HeapAlloc)-int64(before.HeapAlloc), "%s as %s", name, c.unaryType)
			runtime.KeepAlive(out)
			if name == "a long text" {
				require.Less(t, estimated, int64(len(given))+10*messageBytes, "%s as %s", name, c.unaryType)
			}
		}
	}
	deep := []byte(nil)
	for range 1000 {
		deep = append([]byte{0x0a, byte(len(deep) % 100)}, deep...)
	}
	require.Positive(t, estimateProto(deep, (&graphdv1.ResumeRunRequest{}).ProtoReflect().Descriptor()))
}
