package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// TestStatesThatAreShownKeepTheirRoom has calls that show large states: there is room
// for as many as are not on their way yet, and others wait.
func TestStatesThatAreShownKeepTheirRoom(t *testing.T) {
	for name, show := range map[string]func(ctx context.Context, e *runtime.Engine, thread string) error{
		"state": func(ctx context.Context, e *runtime.Engine, thread string) error {
			_, err := e.State(ctx, runtime.StateRequest{Thread: thread})
			return err
		},
		"history": func(ctx context.Context, e *runtime.Engine, thread string) error {
			_, _, err := e.States(ctx, runtime.HistoryQuery{Thread: thread, Limit: 5, Values: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 4
				w, slow := newLoadedWorld(t, many)
				close(slow.gate)
				rooms, answers := make([]runtime.Room, many), make([]error, many)
				var all sync.WaitGroup
				for i := range many {
					all.Go(func() {
						ctx := context.WithValue(t.Context(), runtime.RoomKey{}, &rooms[i])
						answers[i] = show(ctx, w.engine, fmt.Sprint("t", i))
					})
				}
				all.Wait()
				shown := 0
				for i := range many {
					if answers[i] == nil {
						require.True(t, rooms[i].Taken())
						shown++
						continue
					}
					var refused *runtime.Error
					require.ErrorAs(t, answers[i], &refused)
					require.Equal(t, runtime.ReasonTooManyRequests, refused.Reason)
					require.Equal(t, "max-live-bytes", refused.Meta["limit"])
					require.False(t, rooms[i].Taken())
				}
				require.Equal(t, 1, shown, "large states that are shown at a time")
				var little runtime.Room
				ctx := context.WithValue(t.Context(), runtime.RoomKey{}, &little)
				require.NoError(t, show(ctx, w.engine, "small"), "a call that shows a small state waits for no other")
				require.False(t, little.Taken())
				for i := range rooms {
					rooms[i].End()
				}
				require.Zero(t, runtime.Loads(w.engine))
				for i := range many {
					ctx := context.WithValue(t.Context(), runtime.RoomKey{}, &rooms[i])
					require.NoError(t, show(ctx, w.engine, fmt.Sprint("t", i)), "there is room again")
					rooms[i].End()
				}
				require.Zero(t, runtime.Loads(w.engine))
			})
		})
	}
}

// TestLargeQuestionsAreListedOneAfterTheOther has lists of large questions.
func TestLargeQuestionsAreListedOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLoadedWorld(t, 1)
		close(slow.gate)
		asked := &largeQuestions{Store: w.store}
		w.engine.Close()
		w.store = asked
		w.start()
		var first, second runtime.Room
		list := func(room *runtime.Room) error {
			ctx := context.WithValue(t.Context(), runtime.RoomKey{}, room)
			found, err := w.engine.Interrupts(ctx, checkpoint.InterruptQuery{Limit: 10})
			require.Equal(t, err == nil, len(found) > 0)
			return err
		}
		require.NoError(t, list(&first))
		require.True(t, first.Taken())
		began := time.Now()
		require.ErrorIs(t, list(&second), &runtime.Error{Reason: runtime.ReasonTooManyRequests})
		require.Positive(t, time.Since(began))
		first.End()
		require.NoError(t, list(&second))
		second.End()
		require.Zero(t, runtime.Loads(w.engine))
	})
}

// largeQuestions is a store whose lists of questions are large.
type largeQuestions struct{ checkpoint.Store }

func (s *largeQuestions) Interrupts(context.Context, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return []checkpoint.Interrupt{{ID: "q", Message: string(make([]byte, 1<<20))}}, nil
}

// TestRoomThatIsRefusedIsAwaited has a reader that holds other things: it is told that there
// is no room, and waits for it when it has given them back.
func TestRoomThatIsRefusedIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLoadedWorld(t, 2)
		close(slow.gate)
		var first, second runtime.Room
		second.Refuses = true
		read := func(room *runtime.Room, thread string) error {
			ctx := context.WithValue(t.Context(), runtime.RoomKey{}, room)
			_, err := w.engine.State(ctx, runtime.StateRequest{Thread: thread})
			return err
		}
		require.NoError(t, read(&first, "t0"))
		began := time.Now()
		require.True(t, runtime.IsRefused(read(&second, "t1")))
		require.Zero(t, time.Since(began))
		awaited := make(chan error)
		go func() { awaited <- second.Await(t.Context()) }()
		synctest.Wait()
		require.Empty(t, awaited)
		first.End()
		require.NoError(t, <-awaited)
		require.NoError(t, read(&second, "t1"))
		second.End()
		require.Zero(t, runtime.Loads(w.engine))
	})
}

// TestLargeEventHasRoomWhileItIsSent has streams that send large events, each of which holds
// what it has encoded.
func TestLargeEventHasRoomWhileItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, slow := newLoadedWorld(t, 1)
		close(slow.gate)
		f := w.engine.Follow(runtime.FollowRequest{Thread: "t0"})
		defer f.Close()
		const large = 8 << 20
		first, second := runtime.Room{Refuses: true}, runtime.Room{Refuses: true}
		in := func(room *runtime.Room) context.Context {
			return context.WithValue(t.Context(), runtime.RoomKey{}, room)
		}
		require.NoError(t, f.Reserve(t.Context(), large), "what is no stream has no room")
		require.NoError(t, f.Reserve(in(&first), 1))
		require.False(t, first.Taken())
		require.NoError(t, f.Reserve(in(&first), large))
		require.True(t, first.Taken())
		require.NoError(t, f.Reserve(in(&first), large), "it has the room")
		require.True(t, runtime.IsRefused(f.Reserve(in(&second), large)))
		require.NoError(t, f.Reserve(in(&second), 1))
		awaited := make(chan error)
		go func() { awaited <- second.Await(t.Context()) }()
		synctest.Wait()
		require.Empty(t, awaited)
		first.End()
		require.NoError(t, <-awaited)
		require.NoError(t, f.Reserve(in(&second), large))
		second.End()
		require.Zero(t, runtime.Loads(w.engine))
	})
}

// TestLargeEventsAreReadByFewAtATime has many followers of large events, most of which wait
// when they know how large they are.
func TestLargeEventsAreReadByFewAtATime(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		most  int64
	}{"large": {300 << 10, 2}, "small": {1 << 10, 8}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, slow := newLoadedWorld(t, 1)
				close(slow.gate)
				log := &longLog{Store: w.store, value: payload.Quote(strings.Repeat("x", c.bytes))}
				w.engine.Close()
				w.store = log
				w.start()
				var all sync.WaitGroup
				begun := make(chan struct{})
				for range 20 {
					f := w.engine.Follow(runtime.FollowRequest{Thread: "t0"})
					_, err := f.Next(t.Context())
					require.NoError(t, err)
					all.Go(func() {
						defer f.Close()
						<-begun
						for range 5 {
							_, err := f.Next(t.Context())
							assert.NoError(t, err)
						}
					})
				}
				log.most.Store(0)
				close(begun)
				all.Wait()
				require.Equal(t, c.most, log.most.Load())
			})
		})
	}
}

// longLog is a store whose threads have events without end, which it takes time to read.
type longLog struct {
	checkpoint.Store

	value   payload.JSON
	reading atomic.Int64
	most    atomic.Int64 // that read at the same time
}

func (s *longLog) Events(_ context.Context, _ string, after uint64, limit int) (list []checkpoint.Event, err error) {
	now := s.reading.Add(1)
	defer s.reading.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	timer := time.NewTimer(time.Second)
	<-timer.C
	for i := range limit {
		list = append(list, checkpoint.Event{Seq: after + 1 + uint64(i), Kind: checkpoint.EventCustom, Value: s.value})
	}
	return list, nil
}
