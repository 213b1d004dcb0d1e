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
)

// As many messages as find room have it: what was admitted counts before gRPC has it.
func TestLargeMessagesCountWhenTheyAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, size = 1 << 20, 200 << 10
		u := newUnread(most, 0, time.Hour, zap.NewNop())
		blocked := make(chan struct{})
		var all []*sender
		handed := 0
		for range 50 {
			o, _ := u.call(t)
			s := newSender(func(f *frame) error { <-blocked; o.hold(f); return nil }, o, atHand, time.Minute)
			all = append(all, s)
			err := s.offer(t.Context(), sized(size))
			if err == nil {
				handed++
				continue
			}
			require.ErrorIs(t, err, errBehind)
		}
		require.Equal(t, (most-most/4)/size+1, handed)
		require.EqualValues(t, handed*size, u.bytes())
		close(blocked)
		for _, s := range all {
			require.NoError(t, s.close(t.Context(), nil))
		}
		require.EqualValues(t, handed*size, u.bytes(), "gRPC has them")
		u.quiet()
	})
}

// What was admitted and is not taken, or is refused, counts no more.
func TestMessageThatIsNotSentCountsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnread(1<<20, 0, time.Hour, zap.NewNop())
		o, _ := u.call(t)
		taken := make(chan error)
		s := newSender(func(*frame) error { return <-taken }, o, atHand, time.Minute)
		require.NoError(t, s.offer(t.Context(), sized(100<<10)))
		require.ErrorIs(t, s.offer(t.Context(), sized(100<<10)), errBehind)
		require.EqualValues(t, 100<<10, u.bytes())
		taken <- nil
		synctest.Wait()
		require.Zero(t, u.bytes())
		require.NoError(t, s.offer(t.Context(), sized(100<<10)))
		broken := errors.New("broken")
		taken <- broken
		require.ErrorIs(t, s.offer(t.Context(), sized(100<<10)), broken)
		require.Zero(t, u.bytes())
		u.quiet()
	})
}

// An answer counts from when it is packed.
func TestLargeAnswersCountWhenTheyArePacked(t *testing.T) {
	u := newUnread(1<<20, 0, time.Hour, zap.NewNop())
	o, _ := u.call(t)
	run := &graphdv1.Run{Output: jsonOut(payload.JSON(`"` + strings.Repeat("x", 100<<10) + `"`))}
	packed, err := o.pack(t.Context(), run, &runtime.Room{})
	require.NoError(t, err)
	held := u.bytes()
	require.Greater(t, held, int64(100<<10))
	data, err := newFraming().Marshal(packed)
	require.NoError(t, err)
	require.Equal(t, held, u.bytes(), "once")
	data.Free()
	require.Zero(t, u.bytes())
}

// largeThread is a thread whose state is large.
type largeThread struct {
	*thread

	reads atomic.Int64
}

func (e *largeThread) StateAt(context.Context, string, string, string) (payload.JSON, error) {
	e.reads.Add(1)
	return payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`), nil
}

// A stream reads no large state for a client that has not taken the one before.
func TestStreamReadsNothingLargeForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &largeThread{thread: newThread()}
		taken := make(chan *frame)
		w := &watching{
			pump:         &pump{streams: &streams{maxBytes: 8 << 20}, engine: e},
			subscription: &subscription{}, room: &runtime.Room{},
			out: newSender(func(f *frame) error { taken <- f; return nil }, &outlet{}, atHand, time.Minute),
		}
		event := &checkpoint.Event{Seq: 1, Kind: checkpoint.EventValues, Checkpoint: "c"}
		require.NoError(t, w.show(t.Context(), event))
		for range 3 {
			require.ErrorIs(t, w.show(t.Context(), event), errBehind)
		}
		require.EqualValues(t, 1, e.reads.Load())
		<-taken
		require.NoError(t, w.show(t.Context(), event))
		require.EqualValues(t, 2, e.reads.Load())
		<-taken
		require.NoError(t, w.out.close(t.Context(), nil))
	})
}

func (e *largeThread) State(context.Context, runtime.StateRequest) (runtime.Snapshot, error) {
	e.reads.Add(1)
	head, err := e.Thread(context.Background(), "")
	last := head.LastEvent
	e.happen(checkpoint.Event{Kind: checkpoint.EventUpdate})
	return runtime.Snapshot{Values: payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`), LastEvent: last}, err
}

// A snapshot for which there is no room is let go of. What is sent later is the state
// as it is then, and the events that follow it.
func TestSnapshotIsReadAgainWhenItsClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &largeThread{thread: newThread()}
		s := newGraphService(e.thread)
		s.engine = e
		u := newUnread(1<<20, 0, time.Hour, zap.NewNop())
		o, _ := u.call(t)
		full := sized(900 << 10) // there is room for what is small
		o.hold(full)
		mine, _ := u.call(t)
		ctx, leave := context.WithCancel(t.Context())
		sent := make(chan *graphdv1.Event, 100)
		w := &watching{
			pump: s.pump, room: &runtime.Room{},
			subscription: &subscription{head: e.head, opened: &e.run, snapshot: true, selection: selectionIn(s.border(), nil)},
			out: newSender(func(f *frame) error {
				m := &graphdv1.Event{}
				err := proto.Unmarshal(f.bytes, m)
				sent <- m
				return err
			}, mine, 0, time.Minute),
		}
		done := make(chan error)
		go func() { done <- w.relay(ctx, ctx) }()
		later(10 * time.Second)
		require.Len(t, sent, 1)
		require.EqualValues(t, 1, e.reads.Load(), "nothing is read while there is no room")
		o.release(full)
		synctest.Wait()
		require.EqualValues(t, 2, e.reads.Load())
		require.NotNil(t, (<-sent).GetOpened())
		shown := <-sent
		require.NotEmpty(t, shown.GetValues().GetValues().GetJson())
		require.EqualValues(t, 1, shown.GetCursor().GetSequence(), "the state as it was then")
		require.EqualValues(t, 2, (<-sent).GetCursor().GetSequence())
		require.Empty(t, sent)
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, w.out.close(t.Context(), nil))
		require.Zero(t, u.bytes())
		u.quiet()
	})
}

// fullFollower has no room for what is large.
type fullFollower struct {
	Follower

	asked []int
}

var errFull = errors.New("full")

func (f *fullFollower) Reserve(_ context.Context, bytes int) error {
	f.asked = append(f.asked, bytes)
	return errFull
}

// A stream has room for a large event before it encodes it.
func TestLargeEventIsNotEncodedWithoutRoom(t *testing.T) {
	full := &fullFollower{}
	sent := 0
	w := &watching{
		pump:         &pump{streams: &streams{maxBytes: 8 << 20}},
		subscription: &subscription{follower: full}, room: &runtime.Room{},
		out: newSender(func(*frame) error { sent++; return nil }, &outlet{}, atHand, time.Minute),
	}
	require.NoError(t, w.show(t.Context(), &checkpoint.Event{Seq: 1, Kind: checkpoint.EventUpdate, Value: "{}"}))
	require.Empty(t, full.asked, "the small ones don't ask")
	require.Equal(t, 1, sent)
	large := payload.JSON(`"` + strings.Repeat("x", 512<<10) + `"`)
	require.ErrorIs(t, w.show(t.Context(), &checkpoint.Event{Seq: 2, Kind: checkpoint.EventUpdate, Value: large}), errFull)
	asked := []checkpoint.Interrupt{{ID: "q", Value: large}}
	require.ErrorIs(t, w.show(t.Context(), &checkpoint.Event{Seq: 3, Kind: checkpoint.EventInterrupt, Interrupts: asked}), errFull)
	require.Equal(t, []int{len(large), len(large)}, full.asked)
	require.Equal(t, 1, sent)
}
