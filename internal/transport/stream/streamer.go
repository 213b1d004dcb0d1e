package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/transport/flow"
	"github.com/graphd-dev/graphd/internal/transport/interceptor"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// EventStream is the sending side of Stream, Resume and Watch.
type EventStream = grpc.ServerStreamingServer[graphdv1.Event]

// Streamer sends the log of a thread to a client. Stream, Resume and Watch differ
// only in where they begin and when they stop.
type Streamer struct {
	*Registry

	Sources

	encoded *flow.EncodedCache[encodedEventKey] // nil = each stream encodes for itself
}

// Sources are the parts of the server that a Streamer calls.
type Sources struct {
	Engine Engine
	// Follow begins to read the events of a thread.
	Follow  func(runtime.FollowRequest) Follower
	Log     *zap.Logger
	Metrics Metrics          // nil = not counted
	Now     func() time.Time // that streams show
}

// NewStreamer makes a Streamer.
func NewStreamer(registry *Registry, sources Sources) *Streamer {
	return &Streamer{Registry: registry, Sources: sources, encoded: flow.NewEncodedCache[encodedEventKey]()}
}

// Metrics counts the open event streams.
type Metrics interface {
	FollowerOpened()
	// FollowerClosed counts a stream that ends; slow means that its reader did not
	// keep up.
	FollowerClosed(slow bool)
}

// activeStream is a subscription that is being served.
type activeStream struct {
	*Streamer
	*Subscription

	sender        *Sender
	memory        *runtime.CallMemory // for values that were read and are not sent
	lastLargeSize int                 // bytes of the last message, if it was large
}

// ServeStream sends until the run stops, the client leaves, or another cause ends
// the stream. Errors: SLOW_CONSUMER, ctx's error, those of the engine, and those of
// gRPC.
func (s *Streamer) ServeStream(stream EventStream, sub *Subscription) error {
	ctx := stream.Context()
	runID := ""
	if sub.openedRun != nil {
		runID = sub.openedRun.ID
	}
	thread := tenant.ClientName(sub.head.Thread)
	interceptor.RecordSubject(ctx, thread, runID)
	w := &activeStream{Streamer: s, Subscription: sub, sender: s.NewSender(stream), memory: interceptor.CallMemoryOf(ctx)}
	if stream.SetHeader(metadata.Pairs(interceptor.HeaderThreadID, thread, interceptor.HeaderRunID, runID)) != nil {
		w.cancelLeftRun(ctx)
		return interceptor.ClientLeftError(ctx)
	}
	life, release := s.NewLifetime(ctx)
	defer release()
	slow := false
	if s.Metrics != nil {
		s.Metrics.FollowerOpened()
		defer func() { s.Metrics.FollowerClosed(slow) }()
	}
	err := w.relayEvents(ctx, life)
	if errors.Is(err, ErrStalled) {
		slow = true
		err = w.sendEnd(ctx, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER, nil)
	}
	if closing := w.sender.FinishSending(ctx, err); err == nil {
		err = closing
	}
	if errors.Is(err, ErrStalled) {
		return runtime.Errorf(reason.SlowConsumer, "the client does not read").
			With("resumeSequence", strconv.FormatUint(sub.lastSeq, 10))
	}
	if ctx.Err() != nil {
		w.cancelLeftRun(ctx)
		return ctx.Err()
	}
	return err
}

// sendMessage encodes a message, once for its size and for gRPC, and sends it.
func (a *activeStream) sendMessage(ctx context.Context, e *graphdv1.Event) error {
	f, err := flow.EncodeMessage(e)
	if err != nil {
		return err
	}
	return a.sender.SendMessage(ctx, f)
}

// relayEvents opens the stream and sends events until there is a reason to end.
func (a *activeStream) relayEvents(ctx, life context.Context) error {
	given := a.follower != nil // and closed by the caller
	first, err := a.prepareFirst(ctx)
	if a.OnBegun != nil {
		a.OnBegun() // before sending: the client may not read
	}
	defer func() {
		if a.follower != nil && !given {
			a.follower.Close()
		}
	}()
	if failed := a.sendFirstMessages(ctx, first); failed != nil || err != nil {
		return cmp.Or(failed, err)
	}
	f := a.follower
	turns := a.NewHeartbeatWait(life)
	defer turns.StopWaiting()
	for {
		if cause := a.endCause(life); cause != 0 {
			return a.sendEnd(ctx, cause, nil)
		}
		if err := a.relayWaiting(ctx); err != nil {
			return err
		}
		waitCtx := turns.NextContext(a.sender.LastSent)
		events, err := f.Next(waitCtx)
		switch {
		case err == nil:
			ended, err := a.relayOrRewind(ctx, events)
			if ended || err != nil {
				return err
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case IsThreadDeleted(err):
			return a.sendEnd(ctx, graphdv1.EndOfStream_CAUSE_THREAD_DELETED, nil)
		case context.Cause(waitCtx) == nil:
			return a.withResumePosition(err)
		}
		if time.Since(a.sender.LastSent) >= a.HeartbeatInterval {
			if err := a.sendHeartbeat(ctx); err != nil {
				return err
			}
		}
	}
}

// prepareFirst reads the first messages and begins to follow. The client gets the
// messages that were read before an error.
func (a *activeStream) prepareFirst(ctx context.Context) (first []*graphdv1.Event, err error) {
	opened, err := a.openedEvent(ctx)
	if err != nil {
		return nil, err
	}
	first = append(first, opened)
	if a.startsWithSnapshot {
		shown, err := a.snapshotEvent(ctx)
		if err != nil {
			return first, err
		}
		first = append(first, shown)
	}
	if a.follower == nil {
		a.follower = a.followThread(a.head.Thread, a.lastSeq, a.mark, a.wantsRecent, &a.EventSelection)
		a.recent = a.follower.RecentEphemeral()
	}
	if err := a.follower.CheckCursor(ctx); err != nil {
		return first, a.withResumePosition(err)
	}
	return first, nil
}

// followThread begins to follow a thread.
func (s *Streamer) followThread(thread string, after uint64, mark uint32, recent bool, wanted *wire.EventSelection) Follower {
	return s.Follow(runtime.FollowRequest{
		Thread: thread, After: after, Mark: mark,
		WithValues: wanted.SelectsKind(checkpoint.EventValues), WithInputs: wanted.SelectsKind(checkpoint.EventTask),
		WithRecent: recent,
	})
}

// awaitStop begins to follow a thread until a run stops.
func (s *Streamer) awaitStop(thread string, after uint64, mark uint32, view graphdv1.RunView) Follower {
	return s.Follow(runtime.FollowRequest{Thread: thread, After: after, Mark: mark, UntilStop: true, WithStop: showsInterrupts(view)})
}

// endCause returns the reason for which the stream has to end before the next event,
// 0 when there is none.
func (a *activeStream) endCause(life context.Context) graphdv1.EndOfStream_Cause {
	switch {
	case errors.Is(context.Cause(life), ErrDraining):
		return graphdv1.EndOfStream_CAUSE_DRAINING
	case a.isAtStop():
		return graphdv1.EndOfStream_CAUSE_RUN_STOPPED
	case a.isBounded && a.lastSeq >= a.endSeq:
		return graphdv1.EndOfStream_CAUSE_LOG_END
	}
	return 0
}

func (a *activeStream) isAtStop() bool { return a.stopSeq > 0 && a.lastSeq >= a.stopSeq }

// IsThreadDeleted reports whether an error means that the thread does not exist.
func IsThreadDeleted(err error) bool {
	return errors.Is(err, checkpoint.ErrThreadNotFound) ||
		errors.Is(err, &runtime.Error{Reason: runtime.ReasonThreadNotFound})
}

// withResumePosition adds to an error the position from which a client continues.
func (a *activeStream) withResumePosition(err error) error {
	if e := reason.ToClientError(err); e != nil {
		return e.With("resumeSequence", strconv.FormatUint(a.lastSeq, 10)).WithCause(err)
	}
	return err
}

func (a *activeStream) openedEvent(ctx context.Context) (*graphdv1.Event, error) {
	opened := &graphdv1.StreamOpened{Head: wire.CursorToProto(a.head.LogID, a.head.LastEvent), Attached: a.isAttached}
	runID := ""
	if a.openedRun != nil {
		shown := *a.openedRun
		if a.isOutputDropped {
			again, err := a.Engine.Run(ctx, a.memory, a.head.Thread, shown.ID)
			if err != nil {
				return nil, err
			}
			shown.Output = again.Output
		}
		run, err := a.DescribeRun(ctx, shown, &a.head, graphdv1.RunView_RUN_VIEW_BASIC)
		if err != nil {
			return nil, err
		}
		opened.Run, runID = run, a.openedRun.ID
	}
	return &graphdv1.Event{
		Cursor: a.currentCursor(), Time: wire.TimeToProto(a.Now()),
		ThreadId: tenant.ClientName(a.head.Thread), RunId: runID, Channel: wire.ChannelLifecycle,
		Kind: &graphdv1.Event_Opened{Opened: opened},
	}, nil
}

// snapshotEvent returns an event with the present state. The stream continues after
// that state.
func (a *activeStream) snapshotEvent(ctx context.Context) (*graphdv1.Event, error) {
	s, err := a.Engine.State(ctx, runtime.StateRequest{Thread: a.head.Thread, Memory: a.memory})
	if err != nil {
		return nil, err
	}
	a.lastSeq, a.mark = s.LastEvent, 0
	values := &graphdv1.StateValues{
		Values: wire.JSONToProto(s.Values), Interrupts: wire.InterruptsToProto(s.Interrupts), Next: s.Next,
	}
	e := &graphdv1.Event{
		Cursor: wire.CursorToProto(a.head.LogID, a.lastSeq), Time: wire.TimeToProto(a.Now()), ThreadId: tenant.ClientName(a.head.Thread),
		Channel: wire.ChannelValues, Kind: &graphdv1.Event_Values{Values: values},
	}
	if c := s.Checkpoint; c != nil {
		values.Checkpoint = wire.CheckpointRefToProto(c.ID, c.Namespace)
		e.RunId, e.Step, e.Time = c.Run, int32(c.Step), wire.TimeToProto(c.Time)
	}
	return a.omitLargeValue(e, len(s.Values)+largeInterruptPartsSize(s.Interrupts)), nil
}

// relayOrRewind is relayBatch for a client that may not read. A stream that has to
// wait for its client rewinds the follower, and reads the events again from the
// log.
func (a *activeStream) relayOrRewind(ctx context.Context, events []checkpoint.Event) (ended bool, err error) {
	ended, err = a.relayBatch(ctx, events)
	a.memory.Release()
	if runtime.IsMemoryRefused(err) {
		a.follower.Rewind(a.lastSeq, a.mark)
		return false, a.memory.WaitForMemory(ctx)
	}
	if !errors.Is(err, ErrClientBehind) {
		return ended, err
	}
	a.follower.Rewind(a.lastSeq, a.mark)
	return false, a.sender.WaitUntilRead(ctx)
}

// relayBatch sends the events that the client asked for, and reports whether an
// event has ended the stream.
func (a *activeStream) relayBatch(ctx context.Context, events []checkpoint.Event) (ended bool, err error) {
	for i := range events {
		e := &events[i]
		if a.isBounded && (e.Seq > a.endSeq || e.Ephemeral) {
			continue
		}
		if err := a.relayRecent(ctx, e); err != nil {
			return false, err
		}
		before, mark := a.lastSeq, a.mark
		a.advancePosition(e)
		if a.isFollowed(e) && a.SelectsEvent(e) {
			if err := a.sendLogEvent(ctx, e); err != nil {
				a.lastSeq, a.mark = before, mark
				return false, err
			}
		}
		if stop, err := a.isAwaitedStop(ctx, e); err != nil || stop {
			if err == nil {
				err = a.sendEnd(ctx, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, e)
			}
			return true, err
		}
	}
	return false, nil
}

// advancePosition records how far the log was read.
func (a *activeStream) advancePosition(e *checkpoint.Event) {
	switch {
	case e.Seq > a.lastSeq && e.Ephemeral:
		a.lastSeq, a.mark = e.Seq, 0
	case e.Seq > a.lastSeq:
		a.lastSeq, a.mark = e.Seq, runtime.EventMark(e)
	}
}

// currentCursor returns the position from which the client can continue.
func (a *activeStream) currentCursor() *graphdv1.Cursor {
	c := wire.CursorToProto(a.head.LogID, a.lastSeq)
	c.Mark = a.mark
	return c
}

// isFollowed reports whether an event belongs to the followed run or thread.
func (a *activeStream) isFollowed(e *checkpoint.Event) bool {
	return a.run == nil || e.Run == a.run.ID || e.Run == ""
}

// isAwaitedStop reports whether an event is the stop that the stream waits for.
func (a *activeStream) isAwaitedStop(ctx context.Context, e *checkpoint.Event) (bool, error) {
	run := a.run
	if run == nil || e.Kind != checkpoint.EventRunState || e.Run != run.ID || !runtime.IsStopped(e.State) {
		return false, nil
	}
	if a.endsAtFirstStop || e.State.Terminal() {
		return true, nil
	}
	// The run was waiting here, and may have continued since.
	rest, last, err := a.readAtRest(ctx, a.head.Thread, run.ID)
	if err != nil || !rest {
		return false, err
	}
	a.stopSeq = last
	return a.isAtStop(), nil
}

// readAtRest reports whether a run has stopped and will not continue by itself, and
// returns its last event.
func (s *Streamer) readAtRest(ctx context.Context, thread, runID string) (rest bool, last uint64, err error) {
	head, err := s.Engine.Thread(ctx, thread)
	if err != nil {
		return false, 0, err
	}
	run, err := s.Engine.Run(ctx, interceptor.CallMemoryOf(ctx), thread, runID)
	if err != nil {
		return false, 0, err
	}
	rest, last = isAtRest(&head, &run)
	return rest, last, nil
}

// isAtRest is readAtRest for records that were read. A run that waits for people
// continues by itself once answers are stored, unless the thread needs all answers.
func isAtRest(head *checkpoint.Head, run *checkpoint.Run) (rest bool, last uint64) {
	current := head.Run == run.ID
	if run.State == checkpoint.RunInterrupted && current && head.MayGoOn() {
		return false, 0
	}
	if !runtime.IsStopped(run.State) {
		return false, 0
	}
	if current && !run.State.Terminal() {
		return true, max(head.LastEvent, run.LastEvent) // the run may have been read after the head
	}
	return true, run.LastEvent
}

func (a *activeStream) sendHeartbeat(ctx context.Context) error {
	return a.sendMessage(ctx, &graphdv1.Event{
		Time: wire.TimeToProto(a.Now()), ThreadId: tenant.ClientName(a.head.Thread), Channel: wire.ChannelLifecycle,
		Kind: &graphdv1.Event_Heartbeat{
			Heartbeat: &graphdv1.Heartbeat{Scanned: a.currentCursor()},
		},
	})
}

// sendEnd sends the last message. stop is the event with which the run stopped, nil
// if there was none; it has the state of the run at that time.
func (a *activeStream) sendEnd(ctx context.Context, cause graphdv1.EndOfStream_Cause, stop *checkpoint.Event) error {
	return a.sendReadMessage(ctx, func() (*graphdv1.Event, error) { return a.newEndMessage(ctx, cause, stop) })
}

// newEndMessage returns the last message.
func (a *activeStream) newEndMessage(
	ctx context.Context, cause graphdv1.EndOfStream_Cause, stop *checkpoint.Event,
) (*graphdv1.Event, error) {
	last := &graphdv1.EndOfStream{Cause: cause, ResumeAt: a.currentCursor()}
	runID := ""
	if followed := a.run; followed != nil && cause != graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
		run, err := a.readStoppedRun(ctx, followed.ID, stop, graphdv1.RunView_RUN_VIEW_BASIC)
		if err != nil {
			return nil, a.withResumePosition(err)
		}
		last.Run, runID = run, followed.ID
	}
	return &graphdv1.Event{
		Time: wire.TimeToProto(a.Now()), ThreadId: tenant.ClientName(a.head.Thread), RunId: runID, Channel: wire.ChannelLifecycle,
		Kind: &graphdv1.Event_End{End: last},
	}, nil
}

// readStoppedRun returns the followed run as it is, or as it was when it stopped.
func (a *activeStream) readStoppedRun(
	ctx context.Context, id string, stop *checkpoint.Event, view graphdv1.RunView,
) (*graphdv1.Run, error) {
	witness, ok := a.follower.(interface {
		StoppedRun(run string, event uint64) (runtime.StoppedRun, bool)
	})
	if ok && stop != nil {
		if stopped, ok := witness.StoppedRun(id, stop.Seq); ok {
			if run := a.describeStoppedRun(&stopped, a.head.LogID, view); run != nil {
				return run, nil
			}
		}
	}
	run, err := a.Engine.Run(ctx, a.memory, a.head.Thread, id)
	if err != nil {
		return nil, fmt.Errorf("read the run that was followed: %w", err)
	}
	if stop != nil {
		run.State, run.Failure = stop.State, stop.Failure
	}
	return a.DescribeRun(ctx, run, &a.head, view)
}

// cancelTimeout bounds the cancel that a client asked for by leaving.
const cancelTimeout = 10 * time.Second

// cancelLeftRun cancels the run when its client asked for that and left. A drain
// also ends the context of the stream, but does not count as leaving.
func (a *activeStream) cancelLeftRun(ctx context.Context) {
	if !a.cancelsOnLeave || a.IsDraining() || !errors.Is(ctx.Err(), context.Canceled) || a.run == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer done()
	run := a.run
	_, err := a.Engine.Cancel(ctx, runtime.CancelRequest{
		Thread: run.Thread, Run: run.ID, Reason: "the client that asked for DISCONNECT_POLICY_CANCEL left",
		By: interceptor.ActorOf(ctx),
	})
	if err != nil {
		a.Log.Warn("run of a client that left was not cancelled", append(interceptor.CallLogFields(ctx), zap.Error(err))...)
	}
}
