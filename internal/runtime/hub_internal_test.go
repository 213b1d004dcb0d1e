package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// What followers have not read is kept by the store, not by the process.
func TestRingsHoldABoundedNumberOfBytes(t *testing.T) {
	h := newHub()
	var topics []*topic
	for i := range 300 {
		topic := h.join(string(payload.Quote(strings.Repeat("t", i))))
		topic.subscribe(&Follower{wake: make(chan struct{}, 1)})
		for seq := range uint64(8) {
			topic.publish([]checkpoint.Event{{
				Seq: seq + 1, Kind: checkpoint.EventCustom, Value: payload.Quote(strings.Repeat("x", 300<<10)),
			}})
			require.LessOrEqual(t, topic.bytes, ringBytes)
		}
		topics = append(topics, topic)
		require.LessOrEqual(t, h.bytes.Load(), int64(hubBytes))
	}
	last := topics[299]
	require.Empty(t, last.ring, "there is no room")
	require.EqualValues(t, 8, last.floor, "so it is read from the store")
	for _, topic := range topics {
		h.leave(topic)
	}
	require.Zero(t, h.bytes.Load())
}
