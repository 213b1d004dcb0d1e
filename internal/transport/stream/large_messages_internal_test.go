package stream

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/flow"
)

// As many messages are admitted as fit: an admitted message counts before gRPC has
// it.
func TestLargeMessagesCountWhenTheyAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, size = 1 << 20, 200 << 10
		u := flow.NewUnreadTracker(most, 0, time.Hour, zap.NewNop())
		blocked := make(chan struct{})
		var all []*Sender
		handed := 0
		for range 50 {
			o := openTestCall(t, u)
			s := newMessageSender(func(f *flow.EncodedMessage) error { <-blocked; o.HoldMessage(f); return nil }, o, MaxDirectBytes, time.Minute)
			all = append(all, s)
			err := s.OfferMessage(t.Context(), newLargeMessage(size))
			if err == nil {
				handed++
				continue
			}
			require.ErrorIs(t, err, ErrClientBehind)
		}
		require.Equal(t, (most-most/4)/size+1, handed)
		require.EqualValues(t, handed*size, u.HeldBytes())
		close(blocked)
		for _, s := range all {
			require.NoError(t, s.FinishSending(t.Context(), nil))
		}
		require.EqualValues(t, handed*size, u.HeldBytes(), "gRPC has them")
	})
}

// An admitted message that is not sent stops counting.
func TestMessageThatIsNotSentCountsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := flow.NewUnreadTracker(1<<20, 0, time.Hour, zap.NewNop())
		o := openTestCall(t, u)
		taken := make(chan error)
		s := newMessageSender(func(*flow.EncodedMessage) error { return <-taken }, o, MaxDirectBytes, time.Minute)
		require.NoError(t, s.OfferMessage(t.Context(), newLargeMessage(100<<10)))
		require.ErrorIs(t, s.OfferMessage(t.Context(), newLargeMessage(100<<10)), ErrClientBehind)
		require.EqualValues(t, 100<<10, u.HeldBytes())
		taken <- nil
		synctest.Wait()
		require.Zero(t, u.HeldBytes())
		require.NoError(t, s.OfferMessage(t.Context(), newLargeMessage(100<<10)))
		broken := errors.New("broken")
		taken <- broken
		require.ErrorIs(t, s.OfferMessage(t.Context(), newLargeMessage(100<<10)), broken)
		require.Zero(t, u.HeldBytes())
	})
}

// largeStateThread is a thread whose state is large.
type largeStateThread struct {
	*fakeThread

	readCount atomic.Int64
}

func (l *largeStateThread) ValuesAt(context.Context, *runtime.CallMemory, string, string, string) (payload.JSON, error) {
	l.readCount.Add(1)
	return payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`), nil
}

// A stream reads no large state for a client that has not taken the one before.
func TestStreamReadsNothingLargeForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &largeStateThread{fakeThread: newFakeThread()}
		taken := make(chan *flow.EncodedMessage)
		w := &activeStream{
			Streamer: &Streamer{
				Registry: NewRegistry(Settings{MaxMessageBytes: 8 << 20}), Sources: Sources{Engine: e},
			},
			Subscription: &Subscription{}, memory: &runtime.CallMemory{},
			sender: newMessageSender(func(f *flow.EncodedMessage) error { taken <- f; return nil }, &flow.CallUnread{}, MaxDirectBytes, time.Minute),
		}
		event := &checkpoint.Event{Seq: 1, Kind: checkpoint.EventValues, Checkpoint: "c"}
		require.NoError(t, w.sendLogEvent(t.Context(), event))
		for range 3 {
			require.ErrorIs(t, w.sendLogEvent(t.Context(), event), ErrClientBehind)
		}
		require.EqualValues(t, 1, e.readCount.Load())
		<-taken
		require.NoError(t, w.sendLogEvent(t.Context(), event))
		require.EqualValues(t, 2, e.readCount.Load())
		<-taken
		require.NoError(t, w.sender.FinishSending(t.Context(), nil))
	})
}

func (l *largeStateThread) State(context.Context, runtime.StateRequest) (runtime.Snapshot, error) {
	l.readCount.Add(1)
	head, err := l.Thread(context.Background(), "")
	last := head.LastEvent
	l.appendEvents(checkpoint.Event{Kind: checkpoint.EventUpdate})
	return runtime.Snapshot{Values: payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`), LastEvent: last}, err
}

// A snapshot for which there is no memory is dropped. What is sent later is the
// state as it is then, and the events that follow it.
func TestSnapshotIsReadAgainWhenItsClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &largeStateThread{fakeThread: newFakeThread()}
		s := newTestStreamer(e.fakeThread, &streamCounts{})
		s.Engine = e
		u := flow.NewUnreadTracker(1<<20, 0, time.Hour, zap.NewNop())
		o := openTestCall(t, u)
		full := newLargeMessage(900 << 10) // there is memory for small messages
		o.HoldMessage(full)
		mine := openTestCall(t, u)
		ctx, leave := context.WithCancel(t.Context())
		sent := make(chan *graphdv1.Event, 100)
		w := &activeStream{
			Streamer: s, memory: &runtime.CallMemory{},
			Subscription: &Subscription{head: e.head, openedRun: &e.run, startsWithSnapshot: true, EventSelection: selectEvents(nil)},
			sender: newMessageSender(func(f *flow.EncodedMessage) error {
				m := &graphdv1.Event{}
				err := proto.Unmarshal(f.Bytes, m)
				sent <- m
				return err
			}, mine, 0, time.Minute),
		}
		done := make(chan error)
		go func() { done <- w.relayEvents(ctx, ctx) }()
		sleepVirtual(10 * time.Second)
		require.Len(t, sent, 1)
		require.EqualValues(t, 1, e.readCount.Load(), "nothing is read while there is no room")
		o.ReleaseMessage(full)
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
		require.NoError(t, w.sender.FinishSending(t.Context(), nil))
		require.Zero(t, u.HeldBytes())
	})
}

// fullFollower has no memory for large events.
type fullFollower struct {
	Follower

	requested []int
}

var errNoMemory = errors.New("full")

func (f *fullFollower) ReserveMemory(_ context.Context, _ *runtime.CallMemory, bytes int) error {
	f.requested = append(f.requested, bytes)
	return errNoMemory
}

// A stream reserves memory for a large event before it encodes it.
func TestLargeEventIsNotEncodedWithoutMemory(t *testing.T) {
	full := &fullFollower{}
	sent := 0
	w := &activeStream{
		Streamer:     &Streamer{Registry: NewRegistry(Settings{MaxMessageBytes: 8 << 20})},
		Subscription: &Subscription{follower: full}, memory: &runtime.CallMemory{},
		sender: newMessageSender(func(*flow.EncodedMessage) error { sent++; return nil }, &flow.CallUnread{}, MaxDirectBytes, time.Minute),
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

// memoryListener is a listener with connections in memory.
type memoryListener struct{ net.Listener }

func (memoryListener) Accept() (net.Conn, error) {
	here, _ := net.Pipe()
	return here, nil
}

// openTestCall makes a call on a connection of its own.
func openTestCall(t *testing.T, u *flow.UnreadTracker) *flow.CallUnread {
	t.Helper()
	c, err := u.WrapListener(memoryListener{}).Accept()
	require.NoError(t, err)
	o := u.NewCallUnread(peer.NewContext(t.Context(), &peer.Peer{Addr: c.RemoteAddr()}))
	return &o
}

func newLargeMessage(n int) *flow.EncodedMessage { return flow.NewEncodedMessage(make([]byte, n)) }
