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

	encoded *encodedEvents // nil = each stream encodes for itself
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
	return &Streamer{Registry: registry, Sources: sources, encoded: newEncodedEvents()}
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
// the stream.
func (p *Streamer) ServeStream(stream EventStream, sub *Subscription) error {
	ctx := stream.Context()
	runID := ""
	if sub.openedRun != nil {
		runID = sub.openedRun.ID
	}
	interceptor.RecordSubject(ctx, sub.head.Thread, runID)
	w := &activeStream{Streamer: p, Subscription: sub, sender: p.NewSender(stream), memory: interceptor.CallMemoryOf(ctx)}
	if stream.SetHeader(metadata.Pairs(interceptor.HeaderThreadID, sub.head.Thread, interceptor.HeaderRunID, runID)) != nil {
		w.cancelLeftRun(ctx)
		return interceptor.ClientLeftError(ctx)
	}
	life, release := p.NewLifetime(ctx)
	defer release()
	slow := false
	if p.Metrics != nil {
		p.Metrics.FollowerOpened()
		defer func() { p.Metrics.FollowerClosed(slow) }()
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
func (w *activeStream) sendMessage(ctx context.Context, e *graphdv1.Event) error {
	f, err := flow.EncodeMessage(e)
	if err != nil {
		return err
	}
	return w.sender.SendMessage(ctx, f)
}

// relayEvents opens the stream and sends events until there is a reason to end.
func (w *activeStream) relayEvents(ctx, life context.Context) error {
	given := w.follower != nil // and closed by the caller
	first, err := w.prepareFirst(ctx)
	if w.OnBegun != nil {
		w.OnBegun() // before sending: the client may not read
	}
	defer func() {
		if w.follower != nil && !given {
			w.follower.Close()
		}
	}()
	if failed := w.sendFirstMessages(ctx, first); failed != nil || err != nil {
		return cmp.Or(failed, err)
	}
	f := w.follower
	turns := w.NewHeartbeatWait(life)
	defer turns.StopWaiting()
	for {
		if cause := w.endCause(life); cause != 0 {
			return w.sendEnd(ctx, cause, nil)
		}
		waitCtx := turns.NextContext(w.sender.LastSent)
		events, err := f.Next(waitCtx)
		switch {
		case err == nil:
			ended, err := w.relayOrRewind(ctx, events)
			if ended || err != nil {
				return err
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case IsThreadDeleted(err):
			return w.sendEnd(ctx, graphdv1.EndOfStream_CAUSE_THREAD_DELETED, nil)
		case context.Cause(waitCtx) == nil:
			return w.withResumePosition(err)
		}
		if time.Since(w.sender.LastSent) >= w.HeartbeatInterval {
			if err := w.sendHeartbeat(ctx); err != nil {
				return err
			}
		}
	}
}

// prepareFirst reads the first messages and begins to follow. The client gets the
// messages that were read before an error.
func (w *activeStream) prepareFirst(ctx context.Context) (first []*graphdv1.Event, err error) {
	opened, err := w.openedEvent(ctx)
	if err != nil {
		return nil, err
	}
	first = append(first, opened)
	if w.startsWithSnapshot {
		shown, err := w.snapshotEvent(ctx)
		if err != nil {
			return first, err
		}
		first = append(first, shown)
	}
	if w.follower == nil {
		w.follower = w.followThread(w.head.Thread, w.lastSeq, w.mark, &w.EventSelection)
	}
	if err := w.follower.CheckCursor(ctx); err != nil {
		return first, w.withResumePosition(err)
	}
	return first, nil
}

// followThread begins to follow a thread.
func (p *Streamer) followThread(thread string, after uint64, mark uint32, wanted *wire.EventSelection) Follower {
	return p.Follow(runtime.FollowRequest{
		Thread: thread, After: after, Mark: mark,
		WithValues: wanted.SelectsKind(checkpoint.EventValues), WithInputs: wanted.SelectsKind(checkpoint.EventTask),
	})
}

// endCause returns the reason for which the stream has to end before the next event,
// 0 when there is none.
func (w *activeStream) endCause(life context.Context) graphdv1.EndOfStream_Cause {
	switch {
	case errors.Is(context.Cause(life), ErrDraining):
		return graphdv1.EndOfStream_CAUSE_DRAINING
	case w.isAtStop():
		return graphdv1.EndOfStream_CAUSE_RUN_STOPPED
	case w.isBounded && w.lastSeq >= w.endSeq:
		return graphdv1.EndOfStream_CAUSE_LOG_END
	}
	return 0
}

func (w *activeStream) isAtStop() bool { return w.stopSeq > 0 && w.lastSeq >= w.stopSeq }

// IsThreadDeleted reports whether an error means that the thread does not exist.
func IsThreadDeleted(err error) bool {
	return errors.Is(err, checkpoint.ErrThreadNotFound) ||
		errors.Is(err, &runtime.Error{Reason: runtime.ReasonThreadNotFound})
}

// withResumePosition adds to an error the position from which a client continues.
func (w *activeStream) withResumePosition(err error) error {
	if e := reason.ToClientError(err); e != nil {
		return e.With("resumeSequence", strconv.FormatUint(w.lastSeq, 10)).WithCause(err)
	}
	return err
}

func (w *activeStream) openedEvent(ctx context.Context) (*graphdv1.Event, error) {
	opened := &graphdv1.StreamOpened{Head: wire.CursorToProto(w.head.LogID, w.head.LastEvent), Attached: w.isAttached}
	runID := ""
	if w.openedRun != nil {
		shown := *w.openedRun
		if w.isOutputDropped {
			again, err := w.Engine.Run(ctx, w.memory, w.head.Thread, shown.ID)
			if err != nil {
				return nil, err
			}
			shown.Output = again.Output
		}
		run, err := w.DescribeRun(ctx, shown, w.head.LogID)
		if err != nil {
			return nil, err
		}
		opened.Run, runID = run, w.openedRun.ID
	}
	return &graphdv1.Event{
		Cursor: w.currentCursor(), Time: wire.TimeToProto(w.Now()),
		ThreadId: w.head.Thread, RunId: runID, Channel: wire.ChannelLifecycle,
		Kind: &graphdv1.Event_Opened{Opened: opened},
	}, nil
}

// snapshotEvent returns an event with the present state. The stream continues after
// that state.
func (w *activeStream) snapshotEvent(ctx context.Context) (*graphdv1.Event, error) {
	s, err := w.Engine.State(ctx, runtime.StateRequest{Thread: w.head.Thread, Memory: w.memory})
	if err != nil {
		return nil, err
	}
	w.lastSeq, w.mark = s.LastEvent, 0
	values := &graphdv1.StateValues{
		Values: wire.JSONToProto(s.Values), Interrupts: wire.InterruptsToProto(s.Interrupts), Next: s.Next,
	}
	e := &graphdv1.Event{
		Cursor: wire.CursorToProto(w.head.LogID, w.lastSeq), Time: wire.TimeToProto(w.Now()), ThreadId: w.head.Thread,
		Channel: wire.ChannelValues, Kind: &graphdv1.Event_Values{Values: values},
	}
	if c := s.Checkpoint; c != nil {
		values.Checkpoint = wire.CheckpointRefToProto(c.ID, c.Namespace)
		e.RunId, e.Step, e.Time = c.Run, int32(c.Step), wire.TimeToProto(c.Time)
	}
	return w.omitLargeValue(e, len(s.Values)+largeInterruptPartsSize(s.Interrupts)), nil
}

// relayOrRewind is relayBatch for a client that may not read. A stream that has to
// wait for its client rewinds the follower, and reads the events again from the
// log.
func (w *activeStream) relayOrRewind(ctx context.Context, events []checkpoint.Event) (ended bool, err error) {
	ended, err = w.relayBatch(ctx, events)
	w.memory.Release()
	if runtime.IsMemoryRefused(err) {
		w.follower.Rewind(w.lastSeq, w.mark)
		return false, w.memory.WaitForMemory(ctx)
	}
	if !errors.Is(err, ErrClientBehind) {
		return ended, err
	}
	w.follower.Rewind(w.lastSeq, w.mark)
	return false, w.sender.WaitUntilRead(ctx)
}

// relayBatch sends the events that the client asked for, and reports whether the
// stream has ended with one of them.
func (w *activeStream) relayBatch(ctx context.Context, events []checkpoint.Event) (ended bool, err error) {
	for i := range events {
		e := &events[i]
		if w.isBounded && (e.Seq > w.endSeq || e.Ephemeral) {
			continue
		}
		before, mark := w.lastSeq, w.mark
		w.advancePosition(e)
		if w.isFollowed(e) && w.SelectsEvent(e) {
			if err := w.sendLogEvent(ctx, e); err != nil {
				w.lastSeq, w.mark = before, mark
				return false, err
			}
		}
		if stop, err := w.isAwaitedStop(ctx, e); err != nil || stop {
			if err == nil {
				err = w.sendEnd(ctx, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, e)
			}
			return true, err
		}
	}
	return false, nil
}

// advancePosition records how far the log was read.
func (w *activeStream) advancePosition(e *checkpoint.Event) {
	switch {
	case e.Seq > w.lastSeq && e.Ephemeral:
		w.lastSeq, w.mark = e.Seq, 0
	case e.Seq > w.lastSeq:
		w.lastSeq, w.mark = e.Seq, runtime.EventMark(e)
	}
}

// currentCursor returns the position from which the client can continue.
func (w *activeStream) currentCursor() *graphdv1.Cursor {
	c := wire.CursorToProto(w.head.LogID, w.lastSeq)
	c.Mark = w.mark
	return c
}

// isFollowed reports whether an event belongs to the followed run or thread.
func (w *activeStream) isFollowed(e *checkpoint.Event) bool {
	return w.run == nil || e.Run == w.run.ID || e.Run == ""
}

// isAwaitedStop reports whether an event is the stop that the stream waits for.
func (w *activeStream) isAwaitedStop(ctx context.Context, e *checkpoint.Event) (bool, error) {
	run := w.run
	if run == nil || e.Kind != checkpoint.EventRunState || e.Run != run.ID || !runtime.IsStopped(e.State) {
		return false, nil
	}
	if w.endsAtFirstStop || e.State.Terminal() {
		return true, nil
	}
	// The run was waiting here, and may have continued since.
	rest, last, err := w.readAtRest(ctx, w.head.Thread, run.ID)
	if err != nil || !rest {
		return false, err
	}
	w.stopSeq = last
	return w.isAtStop(), nil
}

// readAtRest reports whether a run has stopped and will not continue by itself, and
// returns its last event.
func (p *Streamer) readAtRest(ctx context.Context, thread, runID string) (rest bool, last uint64, err error) {
	head, err := p.Engine.Thread(ctx, thread)
	if err != nil {
		return false, 0, err
	}
	run, err := p.Engine.Run(ctx, interceptor.CallMemoryOf(ctx), thread, runID)
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
	if run.State == checkpoint.RunInterrupted && current &&
		head.Answered > 0 && (!head.NeedsAllAnswers || head.Open == 0) {
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

func (w *activeStream) sendHeartbeat(ctx context.Context) error {
	return w.sendMessage(ctx, &graphdv1.Event{
		Time: wire.TimeToProto(w.Now()), ThreadId: w.head.Thread, Channel: wire.ChannelLifecycle,
		Kind: &graphdv1.Event_Heartbeat{
			Heartbeat: &graphdv1.Heartbeat{Scanned: w.currentCursor()},
		},
	})
}

// sendEnd sends the last message. stop is the event with which the run stopped, nil
// if there was none; it has the state of the run at that time.
func (w *activeStream) sendEnd(ctx context.Context, cause graphdv1.EndOfStream_Cause, stop *checkpoint.Event) error {
	return w.sendReadMessage(ctx, func() (*graphdv1.Event, error) { return w.newEndMessage(ctx, cause, stop) })
}

// newEndMessage returns the last message.
func (w *activeStream) newEndMessage(
	ctx context.Context, cause graphdv1.EndOfStream_Cause, stop *checkpoint.Event,
) (*graphdv1.Event, error) {
	last := &graphdv1.EndOfStream{Cause: cause, ResumeAt: w.currentCursor()}
	runID := ""
	if followed := w.run; followed != nil && cause != graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
		run, err := w.readStoppedRun(ctx, followed.ID, stop)
		if err != nil {
			return nil, w.withResumePosition(err)
		}
		last.Run, runID = run, followed.ID
	}
	return &graphdv1.Event{
		Time: wire.TimeToProto(w.Now()), ThreadId: w.head.Thread, RunId: runID, Channel: wire.ChannelLifecycle,
		Kind: &graphdv1.Event_End{End: last},
	}, nil
}

// readStoppedRun returns the followed run as it is, or as it was when it stopped.
func (w *activeStream) readStoppedRun(ctx context.Context, id string, stop *checkpoint.Event) (*graphdv1.Run, error) {
	witness, ok := w.follower.(interface {
		StoppedRun(run string, event uint64) (runtime.StoppedRun, bool)
	})
	if ok && stop != nil {
		if s, ok := witness.StoppedRun(id, stop.Seq); ok {
			return wire.RunToProto(s.Run, w.head.LogID, s.OpenInterrupts[:min(len(s.OpenInterrupts), maxOpenIDs)]), nil
		}
	}
	run, err := w.Engine.Run(ctx, w.memory, w.head.Thread, id)
	if err != nil {
		return nil, fmt.Errorf("read the run that was followed: %w", err)
	}
	if stop != nil {
		run.State, run.Failure = stop.State, stop.Failure
	}
	return w.DescribeRun(ctx, run, w.head.LogID)
}

// cancelTimeout bounds the cancel that a client asked for by leaving.
const cancelTimeout = 10 * time.Second

// cancelLeftRun cancels the run when its client asked for that and left. A drain
// also ends the context of the stream, but does not count as leaving.
func (w *activeStream) cancelLeftRun(ctx context.Context) {
	if !w.cancelsOnLeave || w.IsDraining() || !errors.Is(ctx.Err(), context.Canceled) || w.run == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer done()
	run := w.run
	_, err := w.Engine.Cancel(ctx, runtime.CancelRequest{
		Thread: run.Thread, Run: run.ID, Reason: "the client that asked for DISCONNECT_POLICY_CANCEL left",
	})
	if err != nil {
		w.Log.Warn("run of a client that left was not cancelled", append(interceptor.CallLogFields(ctx), zap.Error(err))...)
	}
}
