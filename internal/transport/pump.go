package transport

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
)

// eventStream is the sending side of Stream, Resume and Watch.
type eventStream = grpc.ServerStreamingServer[graphdv1.Event]

// pump shows the log of a thread to a client. Stream, Resume and Watch differ
// in where they begin and when they stop, nothing else.
type pump struct {
	*streams

	engine Engine
	follow func(runtime.FollowRequest) Follower
	log    *zap.Logger
	census Census  // nil = nobody counts
	frames *frames // nil = each stream encodes for itself
	now    func() time.Time
}

// Census counts the event streams that are open.
type Census interface {
	FollowerOpened()
	// FollowerClosed says whether the reader did not keep up.
	FollowerClosed(slow bool)
}

// subscription is what one client follows.
type subscription struct {
	head     checkpoint.Head
	run      *checkpoint.Run // nil = the thread across its runs
	opened   *checkpoint.Run // shown first; nil = none
	stripped bool            // its output is not held any more
	after    uint64          // last event looked at
	mark     uint32          // of that event, 0 = unknown
	attached bool
	// firstStop ends the stream at the first stop of the run that it meets. A
	// repeated call looks further: the run may have gone on since.
	firstStop bool
	stopAt    uint64 // the run is at rest and this is its last event; 0 = unknown
	until     uint64 // end of the log when following was not asked for
	bounded   bool   // until is set
	snapshot  bool
	cancel    bool     // cancel the run when the client leaves
	follower  Follower // subscribed already; nil = begin to follow
	begun     func()   // called when the stream has begun; nil = nothing waits for that
	selection
}

// watching is a subscription that is being served.
type watching struct {
	*pump
	*subscription

	out   *sender
	room  *runtime.Room // for what was read and is not sent
	large int           // bytes of the last message, if it was large
}

// serve sends until the run stops, the client leaves, or something else ends
// the stream.
func (p *pump) serve(stream eventStream, sub *subscription) error {
	ctx := stream.Context()
	runID := ""
	if sub.opened != nil {
		runID = sub.opened.ID
	}
	note(ctx, sub.head.Thread, runID)
	w := &watching{pump: p, subscription: sub, out: newSender(sending(stream), outletOf(ctx), p.room, p.stall), room: roomOf(ctx)}
	if stream.SetHeader(metadata.Pairs(headerThreadID, sub.head.Thread, headerRunID, runID)) != nil {
		w.left(ctx)
		return gone(ctx)
	}
	life, release := p.lifetime(ctx)
	defer release()
	slow := false
	if p.census != nil {
		p.census.FollowerOpened()
		defer func() { p.census.FollowerClosed(slow) }()
	}
	err := w.relay(ctx, life)
	if errors.Is(err, errStalled) {
		slow = true
		err = w.end(ctx, graphdv1.EndOfStream_CAUSE_SLOW_CONSUMER, nil)
	}
	if closing := w.out.close(ctx, err); err == nil {
		err = closing
	}
	if errors.Is(err, errStalled) {
		return runtime.Errorf(ReasonSlowConsumer, "the client does not read").
			With("resumeSequence", strconv.FormatUint(sub.after, 10))
	}
	if ctx.Err() != nil {
		w.left(ctx)
		return ctx.Err()
	}
	return err
}

// gone is why a header can't be set before anything is sent: the client has left.
func gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled
}

// sending is how encoded messages are sent.
func sending(stream grpc.ServerStream) func(*frame) error {
	return func(f *frame) error { return stream.SendMsg(f) }
}

// send encodes a message, once for its size and for gRPC, and sends it.
func (w *watching) send(ctx context.Context, e *graphdv1.Event) error {
	f, err := encode(e)
	if err != nil {
		return err
	}
	return w.out.send(ctx, f)
}

// relay opens the stream and passes events on until there is a reason to end.
func (w *watching) relay(ctx, life context.Context) error {
	given := w.follower != nil // and closed by the caller
	first, err := w.beginning(ctx)
	if w.begun != nil {
		w.begun() // before sending: the client may not read
	}
	defer func() {
		if w.follower != nil && !given {
			w.follower.Close()
		}
	}()
	if failed := w.sendFirst(ctx, first); failed != nil || err != nil {
		return cmp.Or(failed, err)
	}
	f := w.follower
	turns := w.turns(life)
	defer turns.close()
	for {
		if cause := w.over(life); cause != 0 {
			return w.end(ctx, cause, nil)
		}
		turn := turns.next(w.out.last)
		events, err := f.Next(turn)
		switch {
		case err == nil:
			ended, err := w.passAll(ctx, events)
			if ended || err != nil {
				return err
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case deleted(err):
			return w.end(ctx, graphdv1.EndOfStream_CAUSE_THREAD_DELETED, nil)
		case context.Cause(turn) == nil:
			return w.broken(err)
		}
		if time.Since(w.out.last) >= w.heartbeat {
			if err := w.beat(ctx); err != nil {
				return err
			}
		}
	}
}

// beginning reads what the stream begins with, and begins to follow. Of an error
// the client learns after what was read before it.
func (w *watching) beginning(ctx context.Context) (first []*graphdv1.Event, err error) {
	opened, err := w.openedEvent(ctx)
	if err != nil {
		return nil, err
	}
	first = append(first, opened)
	if w.snapshot {
		shown, err := w.snapshotEvent(ctx)
		if err != nil {
			return first, err
		}
		first = append(first, shown)
	}
	if w.follower == nil {
		w.follower = w.listen(w.head.Thread, w.after, w.mark, &w.selection)
	}
	if err := w.follower.Check(ctx); err != nil {
		return first, w.broken(err)
	}
	return first, nil
}

// listen begins to follow a thread.
func (p *pump) listen(thread string, after uint64, mark uint32, wanted *selection) Follower {
	return p.follow(runtime.FollowRequest{
		Thread: thread, After: after, Mark: mark,
		Values: wanted.kinds[checkpoint.EventValues], Inputs: wanted.kinds[checkpoint.EventTask],
	})
}

// over says whether the stream has a reason to end before the next event.
func (w *watching) over(life context.Context) graphdv1.EndOfStream_Cause {
	switch {
	case errors.Is(context.Cause(life), errDraining):
		return graphdv1.EndOfStream_CAUSE_DRAINING
	case w.atEnd():
		return graphdv1.EndOfStream_CAUSE_RUN_STOPPED
	case w.bounded && w.after >= w.until:
		return graphdv1.EndOfStream_CAUSE_LOG_END
	}
	return 0
}

func (w *watching) atEnd() bool { return w.stopAt > 0 && w.after >= w.stopAt }

func deleted(err error) bool {
	return errors.Is(err, checkpoint.ErrThreadNotFound) ||
		errors.Is(err, &runtime.Error{Reason: runtime.ReasonThreadNotFound})
}

// broken adds to an error where the client may go on.
func (w *watching) broken(err error) error {
	if e := refusal(err); e != nil {
		return e.With("resumeSequence", strconv.FormatUint(w.after, 10)).Because(err)
	}
	return err
}

func (w *watching) openedEvent(ctx context.Context) (*graphdv1.Event, error) {
	opened := &graphdv1.StreamOpened{Head: cursorOut(w.head.LogID, w.head.LastEvent), Attached: w.attached}
	runID := ""
	if w.opened != nil {
		shown := *w.opened
		if w.stripped {
			again, err := w.engine.Run(ctx, w.head.Thread, shown.ID)
			if err != nil {
				return nil, err
			}
			shown.Output = again.Output
		}
		run, err := w.describe(ctx, shown, w.head.LogID)
		if err != nil {
			return nil, err
		}
		opened.Run, runID = run, w.opened.ID
	}
	return &graphdv1.Event{
		Cursor: w.cursor(), Time: timeOut(w.now()),
		ThreadId: w.head.Thread, RunId: runID, Channel: wordLifecycle,
		Kind: &graphdv1.Event_Opened{Opened: opened},
	}, nil
}

// snapshotEvent shows the present state; what follows begins after it.
func (w *watching) snapshotEvent(ctx context.Context) (*graphdv1.Event, error) {
	s, err := w.engine.State(ctx, runtime.StateRequest{Thread: w.head.Thread})
	if err != nil {
		return nil, err
	}
	w.after, w.mark = s.LastEvent, 0
	values := &graphdv1.StateValues{
		Values: jsonOut(s.Values), Interrupts: interruptsOut(s.Interrupts), Next: s.Next,
	}
	e := &graphdv1.Event{
		Cursor: cursorOut(w.head.LogID, w.after), Time: timeOut(w.now()), ThreadId: w.head.Thread,
		Channel: wordValues, Kind: &graphdv1.Event_Values{Values: values},
	}
	if c := s.Checkpoint; c != nil {
		values.Checkpoint = checkpointOut(c.ID, c.Namespace)
		e.RunId, e.Step, e.Time = c.Run, int32(c.Step), timeOut(c.Time)
	}
	return w.fit(e, len(s.Values)), nil
}

// passAll is pass for a client that may not read. A stream that has to wait for
// its client, or for room to read a state, gives the events back, and reads them again from the log.
func (w *watching) passAll(ctx context.Context, events []checkpoint.Event) (ended bool, err error) {
	ended, err = w.pass(ctx, events)
	w.room.End()
	if runtime.IsRefused(err) {
		w.follower.Unread(w.after, w.mark)
		return false, w.room.Await(ctx)
	}
	if !errors.Is(err, errBehind) {
		return ended, err
	}
	w.follower.Unread(w.after, w.mark)
	return false, w.out.wait(ctx)
}

// pass sends the events the client asked for and says whether the stream has
// ended with one of them.
func (w *watching) pass(ctx context.Context, events []checkpoint.Event) (ended bool, err error) {
	for i := range events {
		e := &events[i]
		if w.bounded && (e.Seq > w.until || e.Ephemeral) {
			continue
		}
		before, mark := w.after, w.mark
		w.look(e)
		if w.mine(e) && w.wants(e) {
			if err := w.show(ctx, e); err != nil {
				w.after, w.mark = before, mark
				return false, err
			}
		}
		if stop, err := w.stops(ctx, e); err != nil || stop {
			if err == nil {
				err = w.end(ctx, graphdv1.EndOfStream_CAUSE_RUN_STOPPED, e)
			}
			return true, err
		}
	}
	return false, nil
}

// look notes how far the log was read.
func (w *watching) look(e *checkpoint.Event) {
	switch {
	case e.Seq > w.after && e.Ephemeral:
		w.after, w.mark = e.Seq, 0
	case e.Seq > w.after:
		w.after, w.mark = e.Seq, runtime.Mark(e)
	}
}

// cursor is where the reader may go on.
func (w *watching) cursor() *graphdv1.Cursor {
	c := cursorOut(w.head.LogID, w.after)
	c.Mark = w.mark
	return c
}

// mine reports whether an event is about what is followed.
func (w *watching) mine(e *checkpoint.Event) bool {
	return w.run == nil || e.Run == w.run.ID || e.Run == ""
}

// stops reports whether an event is the stop that the stream waits for.
func (w *watching) stops(ctx context.Context, e *checkpoint.Event) (bool, error) {
	run := w.run
	if run == nil || e.Kind != checkpoint.EventRunState || e.Run != run.ID || !runtime.Stopped(e.State) {
		return false, nil
	}
	if w.firstStop || e.State.Terminal() {
		return true, nil
	}
	// The run was waiting here; it may have gone on long ago.
	rest, last, err := w.atRest(ctx, w.head.Thread, run.ID)
	if err != nil || !rest {
		return false, err
	}
	w.stopAt = last
	return w.atEnd(), nil
}

// atRest reports whether a run has stopped and nothing is about to wake it, and
// what its last event is.
func (p *pump) atRest(ctx context.Context, thread, runID string) (rest bool, last uint64, err error) {
	head, err := p.engine.Thread(ctx, thread)
	if err != nil {
		return false, 0, err
	}
	run, err := p.engine.Run(ctx, thread, runID)
	if err != nil {
		return false, 0, err
	}
	rest, last = resting(&head, &run)
	return rest, last, nil
}

// resting is atRest for records that are at hand. A run that waits for people
// goes on by itself once answers are stored that nobody holds back.
func resting(head *checkpoint.Head, run *checkpoint.Run) (rest bool, last uint64) {
	current := head.Run == run.ID
	if run.State == checkpoint.RunInterrupted && current &&
		head.Answered > 0 && (!head.Hold || head.Open == 0) {
		return false, 0
	}
	if !runtime.Stopped(run.State) {
		return false, 0
	}
	if current && !run.State.Terminal() {
		return true, max(head.LastEvent, run.LastEvent) // the run may have been read after the head
	}
	return true, run.LastEvent
}

func (w *watching) beat(ctx context.Context) error {
	return w.send(ctx, &graphdv1.Event{
		Time: timeOut(w.now()), ThreadId: w.head.Thread, Channel: wordLifecycle,
		Kind: &graphdv1.Event_Heartbeat{
			Heartbeat: &graphdv1.Heartbeat{Scanned: w.cursor()},
		},
	})
}

// end sends the last message. stop is the event of the run's stop, if one was
// met: it says what the run was then.
func (w *watching) end(ctx context.Context, cause graphdv1.EndOfStream_Cause, stop *checkpoint.Event) error {
	return w.sendRead(ctx, func() (*graphdv1.Event, error) { return w.last(ctx, cause, stop) })
}

// last is the last message.
func (w *watching) last(
	ctx context.Context, cause graphdv1.EndOfStream_Cause, stop *checkpoint.Event,
) (*graphdv1.Event, error) {
	last := &graphdv1.EndOfStream{Cause: cause, ResumeAt: w.cursor()}
	runID := ""
	if followed := w.run; followed != nil && cause != graphdv1.EndOfStream_CAUSE_THREAD_DELETED {
		run, err := w.stopped(ctx, followed.ID, stop)
		if err != nil {
			return nil, w.broken(err)
		}
		last.Run, runID = run, followed.ID
	}
	return &graphdv1.Event{
		Time: timeOut(w.now()), ThreadId: w.head.Thread, RunId: runID, Channel: wordLifecycle,
		Kind: &graphdv1.Event_End{End: last},
	}, nil
}

// stopped is the run that was followed as it is, or as it was when it stopped.
func (w *watching) stopped(ctx context.Context, id string, stop *checkpoint.Event) (*graphdv1.Run, error) {
	witness, ok := w.follower.(interface {
		Stop(run string, event uint64) (runtime.Stop, bool)
	})
	if ok && stop != nil {
		if s, ok := witness.Stop(id, stop.Seq); ok {
			return runOut(s.Run, w.head.LogID, s.Open[:min(len(s.Open), maxOpenIDs)]), nil
		}
	}
	run, err := w.engine.Run(ctx, w.head.Thread, id)
	if err != nil {
		return nil, fmt.Errorf("read the run that was followed: %w", err)
	}
	if stop != nil {
		run.State, run.Failure = stop.State, stop.Failure
	}
	return w.describe(ctx, run, w.head.LogID)
}

// leaveTimeout bounds the cancel that a client asked for by leaving.
const leaveTimeout = 10 * time.Second

// left cancels the run when the client wanted that. Only a client that goes
// away by itself counts: a drain also ends its context, in the end.
func (w *watching) left(ctx context.Context) {
	if !w.cancel || w.isDraining() || !errors.Is(ctx.Err(), context.Canceled) || w.run == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer done()
	run := w.run
	_, err := w.engine.Cancel(ctx, runtime.CancelRequest{
		Thread: run.Thread, Run: run.ID, Reason: "the client that asked for DISCONNECT_POLICY_CANCEL left",
	})
	if err != nil {
		w.log.Warn("run of a client that left was not cancelled", append(callFields(ctx), zap.Error(err))...)
	}
}
