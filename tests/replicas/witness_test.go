package replicas_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// witness follows a thread of which things may be lost, and believes what it
// saw until it is told otherwise.
type witness struct {
	*driver

	cursor *graphdv1.Cursor
	seen   []string // events
}

// tells are the reasons by which a witness learns that it saw what is lost.
var tells = []string{"CURSOR_AHEAD", "CURSOR_LOST", "THREAD_NOT_FOUND", "RUN_NOT_FOUND", "INVALID_CURSOR"}

// look follows until ctx ends, or, when it is not to wait, to the end of the
// log.
func (w *witness) look(ctx context.Context, wait bool) error {
	for {
		_, err := w.watch(ctx, w.any(), w.request(wait), w.take)
		switch {
		case slices.Contains(tells, reason(err)):
			if w.cursor != nil {
				w.tally.add("followers told by " + reason(err))
			}
			w.cursor, w.seen = nil, nil
		case err == nil && !wait:
			return nil
		case err == nil, slices.Contains([]codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Canceled}, status.Code(err)):
		default:
			return fmt.Errorf("witness of %s: %w", w.thread, err)
		}
		if !pause(ctx, 20*time.Millisecond) {
			if wait {
				return nil
			}
			return ctx.Err()
		}
	}
}

// request asks for what comes after what was seen.
func (w *witness) request(wait bool) *graphdv1.WatchRequest {
	req := &graphdv1.WatchRequest{ThreadId: w.thread, Filter: allKinds, Follow: wait}
	if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); w.cursor != nil {
		req.Start = &graphdv1.WatchRequest_After{After: w.cursor}
	}
	return req
}

func (w *witness) take(e *event) {
	w.cursor = e.GetCursor()
	if !e.GetEphemeral() {
		w.seen = append(w.seen, shown(e))
	}
}

type event = graphdv1.Event

// shown is an event that can be compared.
func shown(e *event) string {
	return fmt.Sprintf("%d %s %T %s", e.GetCursor().GetSequence(), e.GetTime().AsTime().Format(time.RFC3339Nano), e.GetKind(), e.GetNode())
}

// verify compares what the witness believes with what there is.
func (w *witness) verify(ctx context.Context) error {
	if err := w.look(ctx, false); err != nil {
		return err
	}
	fresh := &witness{driver: w.driver}
	if err := fresh.look(ctx, false); err != nil {
		return err
	}
	if !slices.Equal(w.seen, fresh.seen) {
		return fmt.Errorf("a follower of %s was not told that it saw what was lost:\n%q\n%q", w.thread, w.seen, fresh.seen)
	}
	return nil
}

// insistOnEnd drives a thread to its end over and over, until nothing can get
// lost any more. It counts what it was told of.
func (d *driver) insistOnEnd(ctx context.Context, safe <-chan struct{}) (*graphdv1.Run, error) {
	pause(ctx, d.begins)
	answered, finished := false, false
	for {
		d.run = ""
		if err := d.start(ctx); err != nil {
			return nil, err
		}
		settled := isClosed(safe)
		run, err := d.wait(ctx)
		switch {
		case reason(err) == "RUN_NOT_FOUND" || reason(err) == "THREAD_NOT_FOUND":
			d.tally.add("people told that a run is gone")
			answered, finished = false, false
		case err != nil:
			return run, err
		case ended(run.GetState()):
			finished = true
			if settled {
				return run, nil
			}
		case len(run.GetOpenInterruptIds()) != 1:
			// The run was read before something was lost, and its questions after.
			d.tally.add("people shown a run that stands still and asks nothing")
		default:
			if finished {
				d.tally.add("people shown that an ended run goes on")
			} else if answered {
				d.tally.add("people shown that an answered question is open")
			}
			answered, finished = false, false
			pause(ctx, d.thinks)
			d.question = run.GetOpenInterruptIds()[0]
			_, err := d.send(ctx, "answer-"+d.thread, "person 0", d.word())
			switch reason(err) {
			case "OK":
				answered = true
			case "RUN_NOT_FOUND", "THREAD_NOT_FOUND", "INTERRUPT_NOT_FOUND", "THREAD_NOT_INTERRUPTED":
				d.tally.add("people told that a question is gone")
			default:
				return run, err
			}
		}
		pause(ctx, 50*time.Millisecond)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
