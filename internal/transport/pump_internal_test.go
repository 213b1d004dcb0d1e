package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

func TestStreamShowsARunFromOpeningToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, stream(&graphdv1.StreamRequest{}))
		opened := s.last(t).GetOpened()
		require.Equal(t, "r1", opened.GetRun().GetRunId())
		require.Equal(t, "L", opened.GetHead().GetLogId())
		require.Equal(t, []string{"t1"}, s.header.Get("graphd-thread-id"))
		require.Equal(t, []string{"r1"}, s.header.Get("graphd-run-id"))

		th.happen(update("a"), checkpoint.Event{Kind: checkpoint.EventTask, Node: "b"})
		th.happen(
			checkpoint.Event{Kind: checkpoint.EventInterrupt, Node: "b", Interrupts: []checkpoint.Interrupt{{ID: "q1", Revision: 9}}},
			state(checkpoint.RunInterrupted), update("never"))
		end := s.ended(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, end.GetCause())
		require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, end.GetRun().GetState())
		require.Equal(t, []string{"q1"}, end.GetRun().GetOpenInterruptIds())
		require.Equal(t, uint64(4), end.GetResumeAt().GetSequence())

		require.Empty(t, s.events()[2].GetInterrupt().GetInterrupts()[0].GetEtag())
		var kinds []string
		for _, e := range s.events() {
			kinds = append(kinds, e.GetChannel()+":"+e.GetNode())
		}
		require.Equal(t, []string{
			"lifecycle:", "updates:a", "__interrupt__:__interrupt__", "lifecycle:", "lifecycle:",
		}, kinds)
		require.Equal(t, `{"a":9007199254740993}`, s.events()[1].GetUpdate().GetValues().GetJson())
	})
}

func TestQuietStreamBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, watch(&graphdv1.WatchRequest{Follow: true}))
		synctest.Wait()
		later(14 * time.Second)
		synctest.Wait()
		require.Len(t, s.events(), 1)
		later(2 * time.Second)
		require.Equal(t, uint64(0), s.last(t).GetHeartbeat().GetScanned().GetSequence())
		require.NotNil(t, s.last(t).GetHeartbeat())

		// Events that the filter hides move the heartbeat's cursor, not its time.
		for range 20 {
			th.happen(checkpoint.Event{Kind: checkpoint.EventTask})
			later(time.Second)
		}
		require.Len(t, s.events(), 3)
		require.GreaterOrEqual(t, s.last(t).GetHeartbeat().GetScanned().GetSequence(), uint64(14))
		require.Nil(t, s.last(t).GetCursor())
		s.leave()
		<-s.done
	})
}

func TestClientThatReadsTooSlowlyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, watch(&graphdv1.WatchRequest{Follow: true}))
		synctest.Wait()
		s.unlimited = false
		th.happen(update("a"), update("b"), update("c"))
		later(29 * time.Second)
		synctest.Wait()
		require.Len(t, s.events(), 1)
		later(2 * time.Second)
		// It reads again, too late for the stream and soon enough for its end.
		for range 10 {
			s.tokens <- struct{}{}
		}
		end := s.ended(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER, end.GetCause())
		require.Equal(t, uint64(1), end.GetResumeAt().GetSequence())
		require.Equal(t, uint64(1), s.events()[1].GetCursor().GetSequence())
	})
}

func TestClientThatNeverReadsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, watch(&graphdv1.WatchRequest{Follow: true}))
		synctest.Wait()
		s.unlimited = false
		th.happen(update("a"), update("b"))
		<-s.done
		var e *runtime.Error
		require.ErrorAs(t, s.err, &e)
		require.Equal(t, ReasonSlowConsumer, e.Reason)
		require.Equal(t, "1", e.Meta["resumeSequence"])
		require.Equal(t, int64(0), s.service.open.Load())
		require.Equal(t, &counted{opened: 1, closed: 1, slow: 1}, s.service.census)
		s.leave()
	})
}

func TestDrainTellsEveryStreamWhereToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, stream(&graphdv1.StreamRequest{
			OnDisconnect: graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL,
		}))
		th.happen(update("a"))
		synctest.Wait()
		s.service.drain()
		end := s.ended(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_DRAINING, end.GetCause())
		require.Equal(t, &counted{opened: 1, closed: 1}, s.service.census)
		require.Equal(t, uint64(1), end.GetResumeAt().GetSequence())
		require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, end.GetRun().GetState())
		require.Empty(t, th.cancelled)

		err := s.service.Watch(&graphdv1.WatchRequest{ThreadId: "t1"}, s.wire)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonServerDraining})
	})
}

func TestOldConnectionEndsItsStreamsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, func(gs *graphService, stream eventStream) error {
			gs.life = time.Minute
			w, ok := stream.(*wire)
			require.True(t, ok)
			w.ctx = births{}.TagConn(w.ctx, nil)
			return watch(&graphdv1.WatchRequest{Follow: true})(gs, stream)
		})
		later(59 * time.Second)
		require.Nil(t, s.last(t).GetEnd())
		later(2 * time.Second)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_DRAINING, s.ended(t).GetCause())
	})
}

func TestDisconnect(t *testing.T) {
	for policy, want := range map[graphdv1.DisconnectPolicy]int{
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_UNSPECIFIED: 0,
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CONTINUE:    0,
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL:      1,
	} {
		synctest.Test(t, func(t *testing.T) {
			th := newThread()
			s := open(t, th, stream(&graphdv1.StreamRequest{OnDisconnect: policy}))
			synctest.Wait()
			s.leave()
			<-s.done
			require.ErrorIs(t, s.err, context.Canceled)
			require.Len(t, th.cancelled, want)
		})
	}
}

// A client may have left before its stream is served.
func TestClientThatLeftBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, func(gs *graphService, es eventStream) error {
			w, ok := es.(*wire)
			require.True(t, ok)
			var leave context.CancelFunc
			w.ctx, leave = context.WithCancel(w.ctx)
			leave()
			return stream(&graphdv1.StreamRequest{
				OnDisconnect: graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL,
			})(gs, es)
		})
		<-s.done
		require.ErrorIs(t, s.err, context.Canceled)
		require.Len(t, th.cancelled, 1)
		require.Empty(t, s.events())
	})
}

func TestDeadlineAndServerTroubleAreNoDisconnect(t *testing.T) {
	cancelling := &graphdv1.StreamRequest{OnDisconnect: graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL}
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, func(gs *graphService, es eventStream) error {
			w, ok := es.(*wire)
			require.True(t, ok)
			var cancel context.CancelFunc
			w.ctx, cancel = context.WithTimeout(w.ctx, time.Second)
			defer cancel()
			return stream(cancelling)(gs, es)
		})
		<-s.done
		require.ErrorIs(t, s.err, context.DeadlineExceeded)
		require.Empty(t, th.cancelled)
	})
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, stream(cancelling))
		th.happen(update("a"))
		th.fail(checkpoint.ErrUnavailable)
		<-s.done
		var e *runtime.Error
		require.ErrorAs(t, s.err, &e)
		require.Equal(t, runtime.ReasonStoreUnavailable, e.Reason)
		require.Equal(t, "1", e.Meta["resumeSequence"])
		require.Empty(t, th.cancelled)
	})
}

func TestDeletedThreadEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, watch(&graphdv1.WatchRequest{Follow: true}))
		th.fail(runtime.Errorf(runtime.ReasonThreadNotFound, "gone"))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_THREAD_DELETED, s.ended(t).GetCause())
	})
}

func TestWatchWithoutFollowEndsAtTheEndOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, watch(&graphdv1.WatchRequest{}))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_LOG_END, s.ended(t).GetCause())

		th.happen(update("a"), checkpoint.Event{Kind: checkpoint.EventTask})
		s = open(t, th, watch(&graphdv1.WatchRequest{}))
		end := s.ended(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_LOG_END, end.GetCause())
		require.Equal(t, uint64(2), end.GetResumeAt().GetSequence())
		require.Len(t, s.events(), 3)
		require.Nil(t, end.GetRun())
	})
}

func TestWatchOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		other := update("other")
		other.Run = "r0"
		th.happen(update("a"), state(checkpoint.RunInterrupted), state(checkpoint.RunRunning), other)
		// The run waited once and went on: a late watcher sees it through.
		s := open(t, th, watch(&graphdv1.WatchRequest{RunId: "r1", Follow: true}))
		synctest.Wait()
		require.Len(t, s.events(), 4)
		th.happen(state(checkpoint.RunSucceeded))
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.ended(t).GetRun().GetState())

		// A run that is over ends the watch where its part of the log ends.
		s = open(t, th, watch(&graphdv1.WatchRequest{RunId: "r1", Follow: true}))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, s.ended(t).GetCause())
		s = open(t, th, watch(&graphdv1.WatchRequest{
			RunId: "r1", Follow: true, Start: &graphdv1.WatchRequest_Now{},
		}))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, s.ended(t).GetCause())
		require.Len(t, s.events(), 2)
	})
}

func TestRestingRuns(t *testing.T) {
	head := checkpoint.Head{Run: "r1", LastEvent: 9}
	for name, c := range map[string]struct {
		state          checkpoint.RunState
		answered, open int
		hold           bool
		rest           bool
	}{
		"running":          {checkpoint.RunRunning, 0, 0, false, false},
		"done":             {checkpoint.RunSucceeded, 0, 0, false, true},
		"waiting":          {checkpoint.RunInterrupted, 0, 2, false, true},
		"answered":         {checkpoint.RunInterrupted, 1, 1, false, false},
		"answers held":     {checkpoint.RunInterrupted, 1, 1, true, true},
		"held and all in":  {checkpoint.RunInterrupted, 2, 0, true, false},
		"queued behind it": {checkpoint.RunQueued, 0, 0, false, false},
	} {
		h := head
		h.Answered, h.Open, h.Hold = c.answered, c.open, c.hold
		rest, _ := resting(&h, &checkpoint.Run{ID: "r1", State: c.state})
		require.Equal(t, c.rest, rest, name)
	}
}

func TestSnapshotComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		th.happen(update("a"), update("b"), update("c"))
		th.snapshot = runtime.Snapshot{
			Values: "{}", Next: []string{"n"}, LastEvent: 2, LogID: "L",
			Interrupts: []checkpoint.Interrupt{{ID: "q1"}},
			Checkpoint: &checkpoint.Checkpoint{ID: "c1", Run: "r1", Step: 3},
		}
		s := open(t, th, watch(&graphdv1.WatchRequest{SnapshotFirst: true, Follow: true}))
		require.Equal(t, "c", s.last(t).GetNode())
		first := s.events()[1]
		require.Equal(t, uint64(2), first.GetCursor().GetSequence())
		require.Equal(t, "{}", first.GetValues().GetValues().GetJson())
		require.Equal(t, []string{"n"}, first.GetValues().GetNext())
		require.Equal(t, "q1", first.GetValues().GetInterrupts()[0].GetInterruptId())
		require.Len(t, s.events(), 3)
		s.leave()
		<-s.done
	})
}

func TestValuesAreReadWhereTheyAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		th.values = `{"a":1}`
		s := open(t, th, watch(&graphdv1.WatchRequest{Follow: true, Filter: &graphdv1.EventFilter{
			Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_DEBUG},
		}}))
		th.happen(checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: "c1"})
		require.Equal(t, `{"a":1}`, s.last(t).GetValues().GetValues().GetJson())
		th.happen(checkpoint.Event{Kind: checkpoint.EventValues, Value: `{"partial":1}`})
		require.Equal(t, `{"partial":1}`, s.last(t).GetValues().GetValues().GetJson())
		th.happen(checkpoint.Event{
			Kind: checkpoint.EventCheckpoint, Checkpoint: "c1", Parent: "c0", Source: checkpoint.SourceLoop,
			Next: []checkpoint.NextTask{{ID: "k", Node: "n"}},
		})
		saved := s.last(t).GetCheckpoint()
		require.Equal(t, `{"a":1}`, saved.GetValues().GetJson())
		require.Equal(t, "c0", saved.GetParent().GetCheckpointId())
		require.Equal(t, "n", saved.GetNext()[0].GetNode())

		th.missing = checkpoint.ErrCheckpointNotFound
		th.values = ""
		th.happen(checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: "rolled-back"})
		require.Nil(t, s.last(t).GetValues().GetValues())
		require.Equal(t, "rolled-back", s.last(t).GetValues().GetCheckpoint().GetCheckpointId())

		th.missing = errors.New("disk on fire")
		th.happen(checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: "c2"})
		<-s.done
		require.ErrorContains(t, s.err, "disk on fire")
	})
}

func TestValueThatIsTooLargeIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, func(gs *graphService, es eventStream) error {
			gs.maxBytes = 100
			return watch(&graphdv1.WatchRequest{Follow: true})(gs, es)
		})
		large := update("a")
		large.Value = payload.Quote(string(make([]byte, 200)))
		th.happen(large)
		e := s.last(t)
		require.True(t, e.GetValueOmitted())
		require.Nil(t, e.GetUpdate().GetValues())
		require.Equal(t, "a", e.GetNode())
		s.leave()
		<-s.done
	})
}

func TestGapIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		s := open(t, th, watch(&graphdv1.WatchRequest{Follow: true}))
		th.happen(update("a"), checkpoint.Event{Kind: runtime.EventGap, Ephemeral: true})
		gap := s.last(t)
		require.NotNil(t, gap.GetGap())
		require.True(t, gap.GetEphemeral())
		require.Equal(t, uint64(1), gap.GetCursor().GetSequence())
		s.leave()
		<-s.done
	})
}

func TestAttachedStreamShowsTheRunFromItsBeginningToWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThread()
		th.happen(update("a"), state(checkpoint.RunInterrupted), state(checkpoint.RunRunning), state(checkpoint.RunSucceeded))
		s := open(t, th, stream(&graphdv1.StreamRequest{RequestId: "r"}))
		end := s.ended(t)
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, end.GetRun().GetState())
		require.Equal(t, uint64(4), end.GetResumeAt().GetSequence())
		require.True(t, s.events()[0].GetOpened().GetAttached())
		require.Equal(t, "a", s.events()[1].GetNode())
	})
}

// A run may stop between the looks at the head and at the run: its last events
// must still be shown.
func TestAStopBetweenTwoLooksIsShown(t *testing.T) {
	head := checkpoint.Head{Run: "r", LastEvent: 10}
	rest, last := resting(&head, &checkpoint.Run{ID: "r", State: checkpoint.RunInterrupted, LastEvent: 18})
	require.True(t, rest)
	require.EqualValues(t, 18, last)
	head.LastEvent = 20 // somebody changed the thread since
	rest, last = resting(&head, &checkpoint.Run{ID: "r", State: checkpoint.RunInterrupted, LastEvent: 18})
	require.True(t, rest)
	require.EqualValues(t, 20, last)
}
