package feed

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

func TestALateFollowerGetsRecentEphemeralEvents(t *testing.T) {
	h := newEventHub(eventHubLimit)
	topic := h.acquireTopic("t")
	topic.PublishEvents([]checkpoint.Event{{Seq: 1, Kind: checkpoint.EventTask}})
	topic.publishEphemeral(newToken("a"), nil)
	topic.PublishEvents([]checkpoint.Event{{Seq: 2, Kind: checkpoint.EventUpdate}})
	topic.publishEphemeral(newToken("b"), nil)
	f := &Follower{topic: topic, wake: make(chan struct{}, 1), wantsRecent: true}
	topic.addFollower(f)
	topic.publishEphemeral(newToken("c"), nil)
	var texts []string
	for _, e := range f.RecentEphemeral() {
		texts = append(texts, string(e.Value))
	}
	require.Equal(t, []string{`"a"`, `"b"`}, texts, "what comes later is followed")
	require.EqualValues(t, 1, f.RecentEphemeral()[0].Seq)
	require.EqualValues(t, 2, f.RecentEphemeral()[1].Seq)
	h.releaseTopic(topic)
	require.Zero(t, h.recentBytes.Load())
}

func TestRecentEphemeralEventsAreBounded(t *testing.T) {
	h := newEventHub(5 * recentBytes) // all threads together keep a quarter of it
	first, second := h.acquireTopic("first"), h.acquireTopic("second")
	for range recentBytes >> 10 {
		first.publishEphemeral(newToken(strings.Repeat("x", 1<<10)), nil)
	}
	require.LessOrEqual(t, first.recent.bytes, recentBytes)
	require.NotEmpty(t, first.recent.events)
	for range recentBytes >> 10 {
		second.publishEphemeral(newToken(strings.Repeat("x", 1<<10)), nil)
	}
	require.LessOrEqual(t, h.recentBytes.Load(), int64(5*recentBytes/4))
	second.publishEphemeral(newToken(strings.Repeat("x", recentBytes)), nil)
	require.Empty(t, second.recent.events, "what is kept has no holes")
}

func TestSmallRecentEphemeralEventsAreBounded(t *testing.T) {
	h := newEventHub(eventHubLimit)
	topic := h.acquireTopic("t")
	smallest := newToken("")
	smallest.Value = "1"
	most := recentBytes / smallest.Size()
	for range 10 * most {
		topic.publishEphemeral(smallest, nil)
	}
	require.Equal(t, most, len(topic.recent.events)) //nolint:testifylint // the events would be printed
	require.LessOrEqual(t, cap(topic.recent.events), 3*most, "what is forgotten leaves memory")
}
