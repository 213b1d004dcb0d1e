package feed

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

const eventHubLimit = 64 << 20

func joinTopic(h *eventHub, thread string) (*Topic, *Follower) {
	t := h.acquireTopic(thread)
	f := &Follower{topic: t, wake: make(chan struct{}, 1)}
	t.addFollower(f)
	return t, f
}

func newLargeEvents(seq uint64, bytes int) []checkpoint.Event {
	return []checkpoint.Event{{Seq: seq, Kind: checkpoint.EventCustom, Value: payload.Quote(strings.Repeat("x", bytes))}}
}

func newToken(text string) checkpoint.Event {
	return checkpoint.Event{Kind: checkpoint.EventMessage, Value: payload.Quote(text), Ephemeral: true}
}

// What followers have not read is kept by the store, not by the process.
func TestRingsHoldABoundedNumberOfBytes(t *testing.T) {
	h := newEventHub(eventHubLimit)
	var topics []*Topic
	large := newLargeEvents(0, 300<<10)[0]
	for i := range 300 {
		topic, _ := joinTopic(h, strconv.Itoa(i))
		for seq := range uint64(8) {
			e := large
			e.Seq = seq + 1
			topic.PublishEvents([]checkpoint.Event{e})
			require.LessOrEqual(t, topic.bytes, ringBytes)
			require.LessOrEqual(t, h.bytes.Load(), int64(eventHubLimit))
		}
		topics = append(topics, topic)
	}
	for _, topic := range topics {
		require.EqualValues(t, 8-len(topic.ring), topic.storeOnlyUpTo, "the rest is read from the store")
		h.releaseTopic(topic)
	}
	require.Zero(t, h.bytes.Load())
	require.Nil(t, h.largeTopics.findLargest())
}

func TestEventsThatAllFollowersPassedAreDropped(t *testing.T) {
	h := newEventHub(eventHubLimit)
	topic, one := joinTopic(h, "t")
	_, two := joinTopic(h, "t")
	topic.PublishEvents(newLargeEvents(1, 100))
	for _, f := range []*Follower{one, two} {
		f.after = 0
		_, behind := f.readRing()
		require.False(t, behind)
		require.EqualValues(t, 1, f.after)
	}
	require.Len(t, topic.ring, 1, "both may still give it back")
	one.readRing()
	require.Len(t, topic.ring, 1, "the other may")
	topic.PublishEvents(newLargeEvents(2, 100))
	require.Len(t, topic.ring, 2)
	two.readRing()
	topic.PublishEvents(newLargeEvents(3, 100))
	require.Len(t, topic.ring, 2, "both have passed the first")
	topic.removeFollower(two)
	for range 3 {
		one.readRing()
	}
	require.EqualValues(t, 3, one.after)
	require.Empty(t, topic.ring)
	require.Zero(t, h.bytes.Load())
	topic.PublishEvents(newLargeEvents(3, 100))
	require.EqualValues(t, 3, topic.lastSeq, "it is known though it is released")
	_, behind := one.readRing()
	require.False(t, behind)
}

// TestTokensPassManyFullTopics has many followers that do not read, and one that
// does.
func TestTokensPassManyFullTopics(t *testing.T) {
	h := newEventHub(eventHubLimit)
	for i := range 75 {
		topic, _ := joinTopic(h, strconv.Itoa(i))
		topic.PublishEvents(newLargeEvents(1, 900<<10))
		for range 100 {
			topic.publishEphemeral(newToken("y"), nil)
		}
	}
	topic, f := joinTopic(h, "t")
	topic.PublishEvents(newLargeEvents(1, 10))
	f.readRing()
	for i := range 1000 {
		topic.publishEphemeral(newToken(strconv.Itoa(i)), nil)
		if i%10 < 9 {
			continue
		}
		for k := i - 9; k <= i; k++ {
			events, behind := f.readRing()
			require.False(t, behind)
			require.Len(t, events, 1)
			require.Equal(t, payload.Quote(strconv.Itoa(k)), events[0].Value)
		}
		require.LessOrEqual(t, h.bytes.Load(), int64(eventHubLimit))
	}
}

// readAll reads what a follower finds in the ring: how many tokens it gets, and how many its
// gaps say are missing.
func readAll(t *testing.T, f *Follower) (tokens, missing uint64) {
	t.Helper()
	for {
		events, behind := f.readRing()
		require.False(t, behind)
		if len(events) == 0 {
			return tokens, missing
		}
		for i := range events {
			switch events[i].Kind {
			case runtime.EventGap:
				n := runtime.MissingEvents(&events[i])
				require.NotZero(t, n)
				missing += n
			case checkpoint.EventMessage:
				tokens++
			default: // durable
			}
		}
	}
}

func TestAGapSaysHowManyTokensAreMissing(t *testing.T) {
	h := newEventHub(eventHubLimit)
	topic, quick := joinTopic(h, "t")
	publish := func(n int) {
		for range n {
			topic.publishEphemeral(newToken("x"), nil)
		}
	}
	topic.PublishEvents(newLargeEvents(1, 10))
	publish(100)
	readAll(t, quick)
	_, slow := joinTopic(h, "t")
	slow.after = 1
	publish(ringSize + 1000)
	topic.PublishEvents(newLargeEvents(2, 10))
	publish(20)
	slow.after = 2 // as the store has it
	tokens, missing := readAll(t, slow)
	require.EqualValues(t, ringSize+1020, tokens+missing, "none of before it came")
	require.EqualValues(t, 20, tokens)

	publish(10)
	tokens, missing = readAll(t, slow)
	require.Equal(t, [2]uint64{10, 0}, [2]uint64{tokens, missing})
	publish(2*ringSize + 7)
	slow.Rewind(2, 0)
	tokens, missing = readAll(t, slow)
	require.EqualValues(t, 2*ringSize+7, tokens+missing, "what was given back is not counted twice")
}

func TestAGapThatIsDroppedStaysCounted(t *testing.T) {
	h := newEventHub(eventHubLimit)
	topic, f := joinTopic(h, "t")
	topic.PublishEvents(newLargeEvents(1, 10))
	f.after = 1
	topic.publishEphemeral(checkpoint.Event{Kind: runtime.EventGap, Ephemeral: true, Value: runtime.GapValue(70)}, nil)
	for range 2 * ringSize {
		topic.publishEphemeral(newToken("x"), nil)
	}
	tokens, missing := readAll(t, f)
	require.EqualValues(t, 2*ringSize+70, tokens+missing)
}

// Who waits for the stop of a run is not woken for each superstep, and holds little in the ring.
func TestOneWhoWaitsForAStopSleepsUntilThen(t *testing.T) {
	h := newEventHub(eventHubLimit)
	topic, follower := joinTopic(h, "t")
	waiting := &Follower{topic: topic, wake: make(chan struct{}, 1), waitsForStop: true}
	topic.addFollower(waiting)
	seq := uint64(0)
	publish := func(e checkpoint.Event) {
		seq++
		e.Seq = seq
		topic.PublishEvents([]checkpoint.Event{e})
	}
	isWoken := func(f *Follower) bool {
		select {
		case <-f.wake:
			return true
		default:
			return false
		}
	}
	update := checkpoint.Event{Kind: checkpoint.EventUpdate, Value: `1`}
	publish(update)
	topic.publishEphemeral(newToken("a"), nil)
	require.True(t, isWoken(follower))
	require.False(t, isWoken(waiting))

	for name, e := range map[string]checkpoint.Event{
		"a stop":         {Kind: checkpoint.EventRunState, State: checkpoint.RunSucceeded},
		"no worker":      {Kind: checkpoint.EventTask, Phase: checkpoint.PhaseUnassigned},
		"a deletion":     {Kind: runtime.EventDeleted},
		"a gap":          {Kind: runtime.EventGap},
		"a large update": {Kind: checkpoint.EventUpdate, Value: payload.Quote(strings.Repeat("x", waitingBytes))},
	} {
		publish(e)
		require.True(t, isWoken(waiting), name)
		for len(topic.ring) > 0 { // both read all
			follower.readRing()
			waiting.readRing()
		}
	}
	for range waitingEvents - 1 {
		publish(update)
	}
	require.False(t, isWoken(waiting))
	publish(update)
	require.True(t, isWoken(waiting), "the ring holds enough")
	var got int
	for {
		events, behind := waiting.readRing()
		require.False(t, behind)
		if len(events) == 0 {
			break
		}
		got += len(events)
	}
	require.Equal(t, waitingEvents, got)
}
