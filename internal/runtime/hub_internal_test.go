package runtime

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

const hubLimit = 64 << 20

func join(h *hub, thread string) (*topic, *Follower) {
	t := h.join(thread)
	f := &Follower{topic: t, wake: make(chan struct{}, 1)}
	t.subscribe(f)
	return t, f
}

func large(seq uint64, bytes int) []checkpoint.Event {
	return []checkpoint.Event{{Seq: seq, Kind: checkpoint.EventCustom, Value: payload.Quote(strings.Repeat("x", bytes))}}
}

func token(text string) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventMessage, Value: payload.Quote(text), Ephemeral: true}
}

// What followers have not read is kept by the store, not by the process.
func TestRingsHoldABoundedNumberOfBytes(t *testing.T) {
	h := newHub(hubLimit)
	var topics []*topic
	for i := range 300 {
		topic, _ := join(h, strconv.Itoa(i))
		for seq := range uint64(8) {
			topic.publish(large(seq+1, 300<<10))
			require.LessOrEqual(t, topic.bytes, ringBytes)
			require.LessOrEqual(t, h.bytes.Load(), int64(hubLimit))
		}
		topics = append(topics, topic)
	}
	for _, topic := range topics {
		require.EqualValues(t, 8-len(topic.ring), topic.floor, "the rest is read from the store")
		h.leave(topic)
	}
	require.Zero(t, h.bytes.Load())
	require.Nil(t, h.large.any())
}

func TestWhatAllFollowersHavePassedIsLetGo(t *testing.T) {
	h := newHub(hubLimit)
	topic, one := join(h, "t")
	_, two := join(h, "t")
	topic.publish(large(1, 100))
	for _, f := range []*Follower{one, two} {
		f.after = 0
		_, behind := f.fromRing()
		require.False(t, behind)
		require.EqualValues(t, 1, f.after)
	}
	require.Len(t, topic.ring, 1, "both may still give it back")
	one.fromRing()
	require.Len(t, topic.ring, 1, "the other may")
	topic.publish(large(2, 100))
	require.Len(t, topic.ring, 2)
	two.fromRing()
	topic.publish(large(3, 100))
	require.Len(t, topic.ring, 2, "both have passed the first")
	topic.unsubscribe(two)
	for range 3 {
		one.fromRing()
	}
	require.EqualValues(t, 3, one.after)
	require.Empty(t, topic.ring)
	require.Zero(t, h.bytes.Load())
	topic.publish(large(3, 100))
	require.EqualValues(t, 3, topic.last, "it is known though it is let go of")
	_, behind := one.fromRing()
	require.False(t, behind)
}

// TestTokensPassManyFullTopics has many followers that do not read, and one that
// does.
func TestTokensPassManyFullTopics(t *testing.T) {
	h := newHub(hubLimit)
	for i := range 75 {
		topic, _ := join(h, strconv.Itoa(i))
		topic.publish(large(1, 900<<10))
		for range 100 {
			topic.whisper(token("y"), nil)
		}
	}
	topic, f := join(h, "t")
	topic.publish(large(1, 10))
	f.fromRing()
	for i := range 1000 {
		topic.whisper(token(strconv.Itoa(i)), nil)
		if i%10 < 9 {
			continue
		}
		for k := i - 9; k <= i; k++ {
			events, behind := f.fromRing()
			require.False(t, behind)
			require.Len(t, events, 1)
			require.Equal(t, payload.Quote(strconv.Itoa(k)), events[0].Value)
		}
		require.LessOrEqual(t, h.bytes.Load(), int64(hubLimit))
	}
}
