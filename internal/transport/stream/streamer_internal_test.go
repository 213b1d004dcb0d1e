package stream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

func TestStreamShowsARunFromOpeningToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newStartCall(th, 0))
		opened := s.lastEvent(t).GetOpened()
		require.Equal(t, "r1", opened.GetRun().GetRunId())
		require.Equal(t, "L", opened.GetHead().GetLogId())
		require.Equal(t, []string{"t1"}, s.header.Get("graphd-thread-id"))
		require.Equal(t, []string{"r1"}, s.header.Get("graphd-run-id"))

		th.appendEvents(newUpdateEvent("a"), checkpoint.Event{Kind: checkpoint.EventTask, Node: "b"})
		th.appendEvents(
			checkpoint.Event{Kind: checkpoint.EventInterrupt, Node: "b", Interrupts: []checkpoint.Interrupt{{ID: "q1", Revision: 9}}},
			newRunStateEvent(checkpoint.RunInterrupted), newUpdateEvent("never"))
		end := s.waitForEnd(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, end.GetCause())
		require.Equal(t, graphdv1.RunState_RUN_STATE_INTERRUPTED, end.GetRun().GetState())
		require.Equal(t, []string{"q1"}, end.GetRun().GetOpenInterruptIds())
		require.Equal(t, uint64(4), end.GetResumeAt().GetSequence())

		require.Empty(t, s.receivedEvents()[2].GetInterrupt().GetInterrupts()[0].GetEtag())
		var kinds []string
		for _, e := range s.receivedEvents() {
			kinds = append(kinds, e.GetChannel()+":"+e.GetNode())
		}
		require.Equal(t, []string{
			"lifecycle:", "updates:a", "__interrupt__:__interrupt__", "lifecycle:", "lifecycle:",
		}, kinds)
		require.Equal(t, `{"a":9007199254740993}`, s.receivedEvents()[1].GetUpdate().GetValues().GetJson())
	})
}

func TestQuietStreamSendsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true}))
		synctest.Wait()
		sleepVirtual(14 * time.Second)
		synctest.Wait()
		require.Len(t, s.receivedEvents(), 1)
		sleepVirtual(2 * time.Second)
		require.Equal(t, uint64(0), s.lastEvent(t).GetHeartbeat().GetScanned().GetSequence())
		require.NotNil(t, s.lastEvent(t).GetHeartbeat())

		// Events that the filter hides move the heartbeat's cursor, not its time.
		for range 20 {
			th.appendEvents(checkpoint.Event{Kind: checkpoint.EventTask})
			sleepVirtual(time.Second)
		}
		require.Len(t, s.receivedEvents(), 3)
		require.GreaterOrEqual(t, s.lastEvent(t).GetHeartbeat().GetScanned().GetSequence(), uint64(14))
		require.Nil(t, s.lastEvent(t).GetCursor())
		s.leave()
		<-s.done
	})
}

func TestClientThatReadsTooSlowlyIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true}))
		synctest.Wait()
		s.isUnlimited = false
		th.appendEvents(newUpdateEvent("a"), newUpdateEvent("b"), newUpdateEvent("c"))
		sleepVirtual(29 * time.Second)
		synctest.Wait()
		require.Len(t, s.receivedEvents(), 1)
		sleepVirtual(2 * time.Second)
		// It reads again, too late for the stream and soon enough for its end.
		for range 10 {
			s.readPermits <- struct{}{}
		}
		end := s.waitForEnd(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER, end.GetCause())
		require.Equal(t, uint64(1), end.GetResumeAt().GetSequence())
		require.Equal(t, uint64(1), s.receivedEvents()[1].GetCursor().GetSequence())
	})
}

func TestClientThatNeverReadsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true}))
		synctest.Wait()
		s.isUnlimited = false
		th.appendEvents(newUpdateEvent("a"), newUpdateEvent("b"))
		<-s.done
		var e *runtime.Error
		require.ErrorAs(t, s.err, &e)
		require.Equal(t, reason.SlowConsumer, e.Reason)
		require.Equal(t, "1", e.Meta["resumeSequence"])
		require.Equal(t, int64(0), s.streamer.openCount.Load())
		require.Equal(t, &streamCounts{opened: 1, closed: 1, slow: 1}, s.counts)
		s.leave()
	})
}

func TestDrainTellsEveryStreamWhereToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newStartCall(th, graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL))
		th.appendEvents(newUpdateEvent("a"))
		synctest.Wait()
		s.streamer.DrainStreams()
		end := s.waitForEnd(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_DRAINING, end.GetCause())
		require.Equal(t, &streamCounts{opened: 1, closed: 1}, s.counts)
		require.Equal(t, uint64(1), end.GetResumeAt().GetSequence())
		require.Equal(t, graphdv1.RunState_RUN_STATE_RUNNING, end.GetRun().GetState())
		require.Empty(t, th.cancelled)

		err := newWatchCall(&graphdv1.WatchRequest{})(s.streamer, s.fakeStream)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonServerDraining})
	})
}

func TestOldConnectionEndsItsStreamsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, func(p *Streamer, stream EventStream) error {
			p.MaxLifetime = time.Minute
			w, ok := stream.(*fakeStream)
			require.True(t, ok)
			w.ctx = ConnectionStart{}.TagConn(w.ctx, nil)
			return newWatchCall(&graphdv1.WatchRequest{Follow: true})(p, stream)
		})
		sleepVirtual(59 * time.Second)
		require.Nil(t, s.lastEvent(t).GetEnd())
		sleepVirtual(2 * time.Second)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_DRAINING, s.waitForEnd(t).GetCause())
	})
}

func TestDisconnect(t *testing.T) {
	for policy, want := range map[graphdv1.DisconnectPolicy]int{
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_UNSPECIFIED: 0,
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CONTINUE:    0,
		graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL:      1,
	} {
		synctest.Test(t, func(t *testing.T) {
			th := newFakeThread()
			s := openStream(t, th, newStartCall(th, policy))
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
		th := newFakeThread()
		s := openStream(t, th, func(p *Streamer, es EventStream) error {
			w, ok := es.(*fakeStream)
			require.True(t, ok)
			var leave context.CancelFunc
			w.ctx, leave = context.WithCancel(w.ctx)
			leave()
			return newStartCall(th, graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL)(p, es)
		})
		<-s.done
		require.ErrorIs(t, s.err, context.Canceled)
		require.Len(t, th.cancelled, 1)
		require.Empty(t, s.receivedEvents())
	})
}

func TestDeadlineAndServerTroubleAreNoDisconnect(t *testing.T) {
	const cancelling = graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, func(p *Streamer, es EventStream) error {
			w, ok := es.(*fakeStream)
			require.True(t, ok)
			var cancel context.CancelFunc
			w.ctx, cancel = context.WithTimeout(w.ctx, time.Second)
			defer cancel()
			return newStartCall(th, cancelling)(p, es)
		})
		<-s.done
		require.ErrorIs(t, s.err, context.DeadlineExceeded)
		require.Empty(t, th.cancelled)
	})
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newStartCall(th, cancelling))
		th.appendEvents(newUpdateEvent("a"))
		th.failReads(checkpoint.ErrUnavailable)
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
		th := newFakeThread()
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true}))
		th.failReads(runtime.Errorf(runtime.ReasonThreadNotFound, "gone"))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_THREAD_DELETED, s.waitForEnd(t).GetCause())
	})
}

func TestWatchWithoutFollowEndsAtTheEndOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{}))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_LOG_END, s.waitForEnd(t).GetCause())

		th.appendEvents(newUpdateEvent("a"), checkpoint.Event{Kind: checkpoint.EventTask})
		s = openStream(t, th, newWatchCall(&graphdv1.WatchRequest{}))
		end := s.waitForEnd(t)
		require.Equal(t, graphdv1.EndOfStream_CAUSE_LOG_END, end.GetCause())
		require.Equal(t, uint64(2), end.GetResumeAt().GetSequence())
		require.Len(t, s.receivedEvents(), 3)
		require.Nil(t, end.GetRun())
	})
}

func TestWatchOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		other := newUpdateEvent("other")
		other.Run = "r0"
		th.appendEvents(newUpdateEvent("a"), newRunStateEvent(checkpoint.RunInterrupted), newRunStateEvent(checkpoint.RunRunning), other)
		// The run waited once and continued: a late watcher sees it to its end.
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{RunId: "r1", Follow: true}))
		synctest.Wait()
		require.Len(t, s.receivedEvents(), 4)
		th.appendEvents(newRunStateEvent(checkpoint.RunSucceeded))
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, s.waitForEnd(t).GetRun().GetState())

		// A run that is over ends the watch where its part of the log ends.
		s = openStream(t, th, newWatchCall(&graphdv1.WatchRequest{RunId: "r1", Follow: true}))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, s.waitForEnd(t).GetCause())
		s = openStream(t, th, newWatchCall(&graphdv1.WatchRequest{
			RunId: "r1", Follow: true, Start: &graphdv1.WatchRequest_Now{},
		}))
		require.Equal(t, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, s.waitForEnd(t).GetCause())
		require.Len(t, s.receivedEvents(), 2)
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
		h.Answered, h.Open, h.NeedsAllAnswers = c.answered, c.open, c.hold
		rest, _ := isAtRest(&h, &checkpoint.Run{ID: "r1", State: c.state})
		require.Equal(t, c.rest, rest, name)
	}
}

func TestSnapshotComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		th.appendEvents(newUpdateEvent("a"), newUpdateEvent("b"), newUpdateEvent("c"))
		th.snapshot = runtime.Snapshot{
			Values: "{}", Next: []string{"n"}, LastEvent: 2, LogID: "L",
			Interrupts: []checkpoint.Interrupt{{ID: "q1"}},
			Checkpoint: &checkpoint.Checkpoint{ID: "c1", Run: "r1", Step: 3},
		}
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{SnapshotFirst: true, Follow: true}))
		require.Equal(t, "c", s.lastEvent(t).GetNode())
		first := s.receivedEvents()[1]
		require.Equal(t, uint64(2), first.GetCursor().GetSequence())
		require.Equal(t, "{}", first.GetValues().GetValues().GetJson())
		require.Equal(t, []string{"n"}, first.GetValues().GetNext())
		require.Equal(t, "q1", first.GetValues().GetInterrupts()[0].GetInterruptId())
		require.Len(t, s.receivedEvents(), 3)
		s.leave()
		<-s.done
	})
}

func TestValuesAreReadWhereTheyAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		th.values = `{"a":1}`
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true, Filter: &graphdv1.EventFilter{
			Channels: []graphdv1.Channel{graphdv1.Channel_CHANNEL_VALUES, graphdv1.Channel_CHANNEL_DEBUG},
		}}))
		th.appendEvents(checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: "c1"})
		require.Equal(t, `{"a":1}`, s.lastEvent(t).GetValues().GetValues().GetJson())
		th.appendEvents(checkpoint.Event{Kind: checkpoint.EventValues, Value: `{"partial":1}`})
		require.Equal(t, `{"partial":1}`, s.lastEvent(t).GetValues().GetValues().GetJson())
		th.appendEvents(checkpoint.Event{
			Kind: checkpoint.EventCheckpoint, Checkpoint: "c1", Parent: "c0", Source: checkpoint.SourceLoop,
			Next: []checkpoint.NextTask{{ID: "k", Node: "n"}},
		})
		saved := s.lastEvent(t).GetCheckpoint()
		require.Equal(t, `{"a":1}`, saved.GetValues().GetJson())
		require.Equal(t, "c0", saved.GetParent().GetCheckpointId())
		require.Equal(t, "n", saved.GetNext()[0].GetNode())

		th.stateErr = checkpoint.ErrCheckpointNotFound
		th.values = ""
		th.appendEvents(checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: "rolled-back"})
		require.Nil(t, s.lastEvent(t).GetValues().GetValues())
		require.Equal(t, "rolled-back", s.lastEvent(t).GetValues().GetCheckpoint().GetCheckpointId())

		th.stateErr = errors.New("disk on fire")
		th.appendEvents(checkpoint.Event{Kind: checkpoint.EventValues, Checkpoint: "c2"})
		<-s.done
		require.ErrorContains(t, s.err, "disk on fire")
	})
}

func TestValueThatIsTooLargeIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, func(p *Streamer, es EventStream) error {
			p.MaxMessageBytes = 100
			return newWatchCall(&graphdv1.WatchRequest{Follow: true})(p, es)
		})
		large := newUpdateEvent("a")
		large.Value = payload.Quote(string(make([]byte, 200)))
		th.appendEvents(large)
		e := s.lastEvent(t)
		require.True(t, e.GetValueOmitted())
		require.Nil(t, e.GetUpdate().GetValues())
		require.Equal(t, "a", e.GetNode())
		s.leave()
		<-s.done
	})
}

// Every part of a question counts.
func TestQuestionsThatAreTooLargeComeWithoutTheirValues(t *testing.T) {
	large := payload.Quote(strings.Repeat("x", 200))
	for name, question := range map[string]checkpoint.Interrupt{
		"value": {Value: large}, "default": {Default: large}, "response": {Response: large},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := newFakeThread()
				s := openStream(t, th, func(p *Streamer, es EventStream) error {
					p.MaxMessageBytes = 70 << 10
					return newWatchCall(&graphdv1.WatchRequest{Follow: true})(p, es)
				})
				question.ID = "q1"
				th.appendEvents(checkpoint.Event{Kind: checkpoint.EventInterrupt, Interrupts: slices.Repeat([]checkpoint.Interrupt{question}, 400)})
				e := s.lastEvent(t)
				require.True(t, e.GetValueOmitted())
				require.Len(t, e.GetInterrupt().GetInterrupts(), 400)
				for _, q := range e.GetInterrupt().GetInterrupts() {
					require.Equal(t, "q1", q.GetInterruptId())
					require.Nil(t, q.GetValue())
					require.Nil(t, q.GetDefaultResponse())
					require.Nil(t, q.GetResponse())
				}
				s.leave()
				<-s.done
			})
		})
	}
}

// A snapshot leaves out the state first, and the values of its questions when that is
// not enough: a stream that begins with it would break each time.
func TestSnapshotThatIsTooLargeComesWithoutItsValues(t *testing.T) {
	small, large := payload.JSON(`{"a":1}`), payload.Quote(strings.Repeat("x", 200))
	for name, test := range map[string]struct {
		values, question payload.JSON
		hasQuestions     bool
	}{
		"state":     {values: payload.Object([]payload.Field{{Key: "a", Value: large}}), question: small, hasQuestions: true},
		"questions": {values: small, question: large},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				th := newFakeThread()
				th.snapshot = runtime.Snapshot{
					Values: test.values, LogID: "L", Checkpoint: &checkpoint.Checkpoint{ID: "c1"},
					Interrupts: []checkpoint.Interrupt{{ID: "q1", Value: test.question}},
				}
				s := openStream(t, th, func(p *Streamer, es EventStream) error {
					p.MaxMessageBytes = 200
					return newWatchCall(&graphdv1.WatchRequest{SnapshotFirst: true, Follow: true})(p, es)
				})
				e := s.lastEvent(t)
				require.True(t, e.GetValueOmitted())
				require.Nil(t, e.GetValues().GetValues())
				require.Equal(t, "q1", e.GetValues().GetInterrupts()[0].GetInterruptId())
				require.Equal(t, test.hasQuestions, e.GetValues().GetInterrupts()[0].GetValue() != nil)
				s.leave()
				<-s.done
			})
		})
	}
}

func TestGapIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true}))
		th.appendEvents(newUpdateEvent("a"), checkpoint.Event{Kind: runtime.EventGap, Ephemeral: true})
		gap := s.lastEvent(t)
		require.NotNil(t, gap.GetGap())
		require.True(t, gap.GetEphemeral())
		require.Equal(t, uint64(1), gap.GetCursor().GetSequence())
		s.leave()
		<-s.done
	})
}

func TestAttachedStreamShowsTheRunFromItsBeginningToWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		th.appendEvents(newUpdateEvent("a"), newRunStateEvent(checkpoint.RunInterrupted), newRunStateEvent(checkpoint.RunRunning), newRunStateEvent(checkpoint.RunSucceeded))
		s := openStream(t, th, newStartCall(th, 0))
		end := s.waitForEnd(t)
		require.Equal(t, graphdv1.RunState_RUN_STATE_SUCCEEDED, end.GetRun().GetState())
		require.Equal(t, uint64(4), end.GetResumeAt().GetSequence())
		require.True(t, s.receivedEvents()[0].GetOpened().GetAttached())
		require.Equal(t, "a", s.receivedEvents()[1].GetNode())
	})
}

// A run may stop between the reads of the head and of the run. Its last events must
// still be shown.
func TestAStopBetweenTwoReadsIsShown(t *testing.T) {
	head := checkpoint.Head{Run: "r", LastEvent: 10}
	rest, last := isAtRest(&head, &checkpoint.Run{ID: "r", State: checkpoint.RunInterrupted, LastEvent: 18})
	require.True(t, rest)
	require.EqualValues(t, 18, last)
	head.LastEvent = 20 // the thread has changed since
	rest, last = isAtRest(&head, &checkpoint.Run{ID: "r", State: checkpoint.RunInterrupted, LastEvent: 18})
	require.True(t, rest)
	require.EqualValues(t, 20, last)
}

func TestALateStreamShowsRecentEphemeralEventsInTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newFakeThread()
		th.appendEvents(newUpdateEvent("a"), newUpdateEvent("b"))
		for i, node := range []string{"before a", "after a", "after b"} {
			th.recent = append(th.recent, checkpoint.Event{
				Kind: checkpoint.EventMessage, Run: "r1", Node: node, Seq: uint64(i), Ephemeral: true, Value: payload.Quote("x"),
			})
		}
		s := openStream(t, th, newWatchCall(&graphdv1.WatchRequest{Follow: true, RecentEphemeral: true}))
		synctest.Wait()
		th.appendEvents(newUpdateEvent("c"), newRunStateEvent(checkpoint.RunSucceeded))
		synctest.Wait()
		var nodes []string
		for _, e := range s.receivedEvents() {
			if e.GetNode() != "" {
				nodes = append(nodes, e.GetNode())
			}
		}
		require.Equal(t, []string{"before a", "a", "after a", "b", "after b", "c"}, nodes)
		s.leave()
		<-s.done
	})
}
