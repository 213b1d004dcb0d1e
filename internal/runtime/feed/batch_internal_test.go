package feed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func newPiece(task, text string) checkpoint.Event {
	value := `{"type":"AIMessageChunk","id":"m","content":` + string(payload.Quote(text)) + `}`
	return checkpoint.Event{Kind: checkpoint.EventMessage, Task: task, Value: payload.JSON(value), Ephemeral: true}
}

func joinFollower(topic *Topic) (*Topic, *Follower) {
	f := &Follower{topic: topic, wake: make(chan struct{}, 1)}
	topic.addFollower(f)
	return topic, f
}

func newSlowFollower() (*Topic, *Follower) {
	topic, f := joinTopic(newEventHub(eventHubLimit), "t")
	topic.PublishEvents(newLargeEvents(1, 10))
	f.after = 1
	f.readRing() // passes it
	return topic, f
}

// readEvents reads all that a follower finds, as its stream does.
func readEvents(t *testing.T, f *Follower) (events []checkpoint.Event) {
	t.Helper()
	for {
		read, behind := f.readRing()
		require.False(t, behind)
		if len(read) == 0 {
			return events
		}
		events = append(events, read...)
	}
}

func textOf(events []checkpoint.Event) string {
	var text strings.Builder
	for _, e := range events {
		_, part, _ := strings.Cut(string(e.Value), `"content":"`)
		text.WriteString(strings.TrimSuffix(part, `"}`))
	}
	return text.String()
}

func TestAFollowerFarBehindGetsPiecesJoined(t *testing.T) {
	topic, f := newSlowFollower()
	var want strings.Builder
	for i := range 20_000 {
		piece := fmt.Sprintf("%d ", i)
		want.WriteString(piece)
		topic.publishEphemeral(newPiece("a", piece), nil)
		require.LessOrEqual(t, topic.bytes, ringBytes)
	}
	events := readEvents(t, f)
	require.Equal(t, want.String(), textOf(events))
	require.Len(t, events, (20_000-joinBehind+maxJoined-1)/maxJoined+joinBehind, "the newest come one by one")
	require.Zero(t, topic.bytes)
	require.Zero(t, topic.eventCount)
}

func TestAFollowerThatKeepsUpGetsEachPiece(t *testing.T) {
	topic, f := newSlowFollower()
	for range 10 {
		for range joinBehind {
			topic.publishEphemeral(newPiece("a", "x"), nil)
		}
		require.Len(t, readEvents(t, f), joinBehind)
	}
}

// Another follower is always behind, so the pieces of the one are joined while it reads.
func TestAFollowerAmongJoinedPiecesGetsTheRest(t *testing.T) {
	topic, f := newSlowFollower()
	_, slow := joinFollower(topic)
	slow.after = 1
	var read, last string
	for i := range 5000 {
		topic.publishEphemeral(newPiece("a", strconv.Itoa(i)+" "), nil)
		if i%97 == 0 {
			events, _ := f.readRing()
			last = textOf(events)
			read += last
		}
		if i%1000 == 500 {
			f.Rewind(1, 0)
			events, _ := f.readRing()
			again := textOf(events)
			require.True(t, strings.HasPrefix(again, last))
			read = strings.TrimSuffix(read, last) + again
			last = again
		}
	}
	read += textOf(readEvents(t, f))
	require.Equal(t, textOf(readEvents(t, slow)), read)
}

func TestOnlyPiecesOfOneMessageAreJoined(t *testing.T) {
	topic, f := newSlowFollower()
	for range 100 {
		topic.publishEphemeral(newPiece("a", "x"), nil)
		topic.publishEphemeral(newPiece("a", "y"), nil)
		topic.publishEphemeral(newPiece("b", "z"), nil)
	}
	events := readEvents(t, f)
	require.Equal(t, "xy", textOf(events[:1]))
	require.Equal(t, "b", events[1].Task)
	require.Len(t, events, 300-(300-joinBehind+2)/3)
	require.Equal(t, strings.Repeat("xyz", 100), textOf(events))
}

func TestPiecesThatCannotBeJoinedAreBounded(t *testing.T) {
	topic, f := newSlowFollower()
	for i := range uint64(3 * ringSize) {
		e := newPiece("a", "x")
		e.Task = strconv.FormatUint(i, 10)
		topic.publishEphemeral(e, nil)
		require.LessOrEqual(t, topic.eventCount, ringSize)
	}
	tokens, missing := readAll(t, f)
	require.EqualValues(t, 2*ringSize, missing)
	require.EqualValues(t, ringSize, tokens)
}

func TestJoinedPiecesKeepTheirPlaceAmongDurableEvents(t *testing.T) {
	topic, f := newSlowFollower()
	for i := range 100 {
		for range 100 {
			topic.publishEphemeral(newPiece(strconv.Itoa(i), "x"), nil)
		}
		topic.PublishEvents([]checkpoint.Event{{Seq: topic.lastSeq + 1, Kind: checkpoint.EventTask, Task: "end of " + strconv.Itoa(i)}})
	}
	events := readEvents(t, f)
	var want []string
	for i := range 100 {
		want = append(want, strconv.Itoa(i), "end of "+strconv.Itoa(i))
	}
	require.Equal(t, want, tasksOf(events))
	require.Equal(t, strings.Repeat("x", 10_000), textOf(events))
}

func TestJoinedPiecesFromBeforeWhatWasReadInTheStoreAreMissing(t *testing.T) {
	topic, f := newSlowFollower()
	for range 200 {
		topic.publishEphemeral(newPiece("a", "x"), nil)
	}
	topic.PublishEvents(newLargeEvents(2, 10))
	f.after, f.isPositioned = 2, false // as it has read in the store
	events, behind := f.readRing()
	require.Equal(t, [2]any{runtime.EventGap, false}, [2]any{events[0].Kind, behind})
	require.EqualValues(t, 200, runtime.MissingEvents(&events[0]))
	require.Empty(t, readEvents(t, f))
}

func TestAFollowerThatComesAmongPiecesGetsThoseAfterIt(t *testing.T) {
	topic, _ := newSlowFollower()
	var f *Follower
	for i := range 400 {
		if i == 100 {
			_, f = joinFollower(topic)
			f.after = 1
		}
		topic.publishEphemeral(newPiece("a", strconv.Itoa(i)+" "), nil)
	}
	f.pos = 0 // as one that was positioned by a durable event from before
	text := textOf(readEvents(t, f))
	require.True(t, strings.HasPrefix(text, "100 101 "), text)
	require.True(t, strings.HasSuffix(text, " 399 "), text)
}

func TestLargePiecesAreJoinedUpToALimit(t *testing.T) {
	for _, bytes := range []int{10 << 10, 40 << 10} {
		topic, f := newSlowFollower()
		for range ringBytes / bytes / 2 {
			topic.publishEphemeral(newPiece("a", strings.Repeat("x", bytes)), nil)
			require.LessOrEqual(t, topic.bytes, ringBytes)
		}
		for range joinBehind {
			topic.publishEphemeral(newPiece("b", ""), nil)
		}
		events := readEvents(t, f)
		require.Equal(t, "a", events[0].Task)
		for _, e := range events {
			require.LessOrEqual(t, len(e.Value), maxJoinedBytes)
		}
	}
}

// tasksOf returns the tasks of events, each once in a row.
func tasksOf(events []checkpoint.Event) (tasks []string) {
	for i := range events {
		tasks = append(tasks, events[i].Task)
	}
	return slices.Compact(tasks)
}
