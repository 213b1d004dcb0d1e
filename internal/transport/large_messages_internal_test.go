package transport

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// As many messages are admitted as fit: what was admitted counts before gRPC has it.
func TestLargeMessagesCountWhenTheyAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, size = 1 << 20, 200 << 10
		u := newUnreadTracker(most, 0, time.Hour, zap.NewNop())
		blocked := make(chan struct{})
		var all []*messageSender
		handed := 0
		for range 50 {
			o, _ := u.openCall(t)
			s := newMessageSender(func(f *encodedMessage) error { <-blocked; o.holdMessage(f); return nil }, o, maxDirectBytes, time.Minute)
			all = append(all, s)
			err := s.offerMessage(t.Context(), newSizedMessage(size))
			if err == nil {
				handed++
				continue
			}
			require.ErrorIs(t, err, errClientBehind)
		}
		require.Equal(t, (most-most/4)/size+1, handed)
		require.EqualValues(t, handed*size, u.readHeldBytes())
		close(blocked)
		for _, s := range all {
			require.NoError(t, s.finishSending(t.Context(), nil))
		}
		require.EqualValues(t, handed*size, u.readHeldBytes(), "gRPC has them")
		u.stopReliefTimer()
	})
}

// What was admitted and is not taken, or is refused, counts no more.
func TestMessageThatIsNotSentCountsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnreadTracker(1<<20, 0, time.Hour, zap.NewNop())
		o, _ := u.openCall(t)
		taken := make(chan error)
		s := newMessageSender(func(*encodedMessage) error { return <-taken }, o, maxDirectBytes, time.Minute)
		require.NoError(t, s.offerMessage(t.Context(), newSizedMessage(100<<10)))
		require.ErrorIs(t, s.offerMessage(t.Context(), newSizedMessage(100<<10)), errClientBehind)
		require.EqualValues(t, 100<<10, u.readHeldBytes())
		taken <- nil
		synctest.Wait()
		require.Zero(t, u.readHeldBytes())
		require.NoError(t, s.offerMessage(t.Context(), newSizedMessage(100<<10)))
		broken := errors.New("broken")
		taken <- broken
		require.ErrorIs(t, s.offerMessage(t.Context(), newSizedMessage(100<<10)), broken)
		require.Zero(t, u.readHeldBytes())
		u.stopReliefTimer()
	})
}

// An answer counts from when it is packed.
func TestLargeAnswersCountWhenTheyArePacked(t *testing.T) {
	u := newUnreadTracker(1<<20, 0, time.Hour, zap.NewNop())
	o, _ := u.openCall(t)
	run := &graphdv1.Run{Output: wire.JSONToProto(payload.JSON(`"` + strings.Repeat("x", 100<<10) + `"`))}
	packed, err := o.encodeAnswer(t.Context(), run, &runtime.CallMemory{})
	require.NoError(t, err)
	held := u.readHeldBytes()
	require.Greater(t, held, int64(100<<10))
	data, err := newEncodedCodec().Marshal(packed)
	require.NoError(t, err)
	require.Equal(t, held, u.readHeldBytes(), "once")
	data.Free()
	require.Zero(t, u.readHeldBytes())
}

// largeStateThread is a thread whose state is large.
type largeStateThread struct {
	*fakeThread

	readCount atomic.Int64
}

func (e *largeStateThread) ValuesAt(context.Context, string, string, string) (payload.JSON, error) {
	e.readCount.Add(1)
	return payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`), nil
}

// A stream reads no large state for a client that has not taken the one before.
func TestStreamReadsNothingLargeForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &largeStateThread{fakeThread: newFakeThread()}
		taken := make(chan *encodedMessage)
		w := &activeStream{
			eventStreamer: &eventStreamer{streamRegistry: &streamRegistry{maxMessageBytes: 8 << 20}, engine: e},
			subscription:  &subscription{}, memory: &runtime.CallMemory{},
			sender: newMessageSender(func(f *encodedMessage) error { taken <- f; return nil }, &callUnread{}, maxDirectBytes, time.Minute),
		}
		event := &checkpoint.Event{Seq: 1, Kind: checkpoint.EventValues, Checkpoint: "c"}
		require.NoError(t, w.sendLogEvent(t.Context(), event))
		for range 3 {
			require.ErrorIs(t, w.sendLogEvent(t.Context(), event), errClientBehind)
		}
		require.EqualValues(t, 1, e.readCount.Load())
		<-taken
		require.NoError(t, w.sendLogEvent(t.Context(), event))
		require.EqualValues(t, 2, e.readCount.Load())
		<-taken
		require.NoError(t, w.sender.finishSending(t.Context(), nil))
	})
}

func (e *largeStateThread) State(context.Context, runtime.StateRequest) (runtime.Snapshot, error) {
	e.readCount.Add(1)
	head, err := e.Thread(context.Background(), "")
	last := head.LastEvent
	e.appendEvents(checkpoint.Event{Kind: checkpoint.EventUpdate})
	return runtime.Snapshot{Values: payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`), LastEvent: last}, err
}

// A snapshot for which there is no memory is dropped. What is sent later is the
// state as it is then, and the events that follow it.
func TestSnapshotIsReadAgainWhenItsClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &largeStateThread{fakeThread: newFakeThread()}
		s := newGraphService(e.fakeThread)
		s.engine = e
		u := newUnreadTracker(1<<20, 0, time.Hour, zap.NewNop())
		o, _ := u.openCall(t)
		full := newSizedMessage(900 << 10) // there is memory for small messages
		o.holdMessage(full)
		mine, _ := u.openCall(t)
		ctx, leave := context.WithCancel(t.Context())
		sent := make(chan *graphdv1.Event, 100)
		w := &activeStream{
			eventStreamer: s.eventStreamer, memory: &runtime.CallMemory{},
			subscription: &subscription{head: e.head, openedRun: &e.run, startsWithSnapshot: true, EventSelection: wire.EventSelectionFromProto(s.newValidator(), nil)},
			sender: newMessageSender(func(f *encodedMessage) error {
				m := &graphdv1.Event{}
				err := proto.Unmarshal(f.bytes, m)
				sent <- m
				return err
			}, mine, 0, time.Minute),
		}
		done := make(chan error)
		go func() { done <- w.relayEvents(ctx, ctx) }()
		sleepVirtual(10 * time.Second)
		require.Len(t, sent, 1)
		require.EqualValues(t, 1, e.readCount.Load(), "nothing is read while there is no room")
		o.releaseMessage(full)
		synctest.Wait()
		require.EqualValues(t, 2, e.readCount.Load())
		require.NotNil(t, (<-sent).GetOpened())
		shown := <-sent
		require.NotEmpty(t, shown.GetValues().GetValues().GetJson())
		require.EqualValues(t, 1, shown.GetCursor().GetSequence(), "the state as it was then")
		require.EqualValues(t, 2, (<-sent).GetCursor().GetSequence())
		require.Empty(t, sent)
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, w.sender.finishSending(t.Context(), nil))
		require.Zero(t, u.readHeldBytes())
		u.stopReliefTimer()
	})
}

// fullFollower has no memory for large events.
type fullFollower struct {
	Follower

	requested []int
}

var errNoMemory = errors.New("full")

func (f *fullFollower) ReserveMemory(_ context.Context, bytes int) error {
	f.requested = append(f.requested, bytes)
	return errNoMemory
}

// A stream reserves memory for a large event before it encodes it.
func TestLargeEventIsNotEncodedWithoutMemory(t *testing.T) {
	full := &fullFollower{}
	sent := 0
	w := &activeStream{
		eventStreamer: &eventStreamer{streamRegistry: &streamRegistry{maxMessageBytes: 8 << 20}},
		subscription:  &subscription{follower: full}, memory: &runtime.CallMemory{},
		sender: newMessageSender(func(*encodedMessage) error { sent++; return nil }, &callUnread{}, maxDirectBytes, time.Minute),
	}
	require.NoError(t, w.sendLogEvent(t.Context(), &checkpoint.Event{Seq: 1, Kind: checkpoint.EventUpdate, Value: "{}"}))
	require.Empty(t, full.requested, "the small ones don't ask")
	require.Equal(t, 1, sent)
	large := payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`)
	require.ErrorIs(t, w.sendLogEvent(t.Context(), &checkpoint.Event{Seq: 2, Kind: checkpoint.EventUpdate, Value: large}), errNoMemory)
	asked := []checkpoint.Interrupt{{ID: "q", Value: large}}
	require.ErrorIs(t, w.sendLogEvent(t.Context(), &checkpoint.Event{Seq: 3, Kind: checkpoint.EventInterrupt, Interrupts: asked}), errNoMemory)
	require.Equal(t, []int{len(large), len(large)}, full.requested)
	require.Equal(t, 1, sent)
}
