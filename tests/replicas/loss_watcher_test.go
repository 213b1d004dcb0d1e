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
	"github.com/graphd-dev/graphd/tests/harness"
)

// lossWatcher follows a thread of which events may be lost, and keeps what it saw
// until an error says otherwise.
type lossWatcher struct {
	*threadDriver

	cursor *graphdv1.Cursor
	seen   []string // events
}

// lossReasons are the reasons by which a lossWatcher learns that it saw what is
// lost.
var lossReasons = []string{"CURSOR_AHEAD", "CURSOR_LOST", "THREAD_NOT_FOUND", "RUN_NOT_FOUND", "INVALID_CURSOR"}

// followLog follows until ctx ends, or, when it is not to wait, to the end of the
// log.
func (w *lossWatcher) followLog(ctx context.Context, wait bool) error {
	for {
		_, err := harness.ReadStream(ctx, w.anyServer(), w.newWatchRequest(wait), w.recordEvent)
		switch {
		case slices.Contains(lossReasons, harness.ReasonOf(err)):
			if w.cursor != nil {
				w.tally.CountEvent("followers told by " + harness.ReasonOf(err))
			}
			w.cursor, w.seen = nil, nil
		case err == nil && !wait:
			return nil
		case err == nil, slices.Contains([]codes.Code{codes.Unavailable, codes.Aborted, codes.DeadlineExceeded, codes.Canceled}, status.Code(err)):
		default:
			return fmt.Errorf("witness of %s: %w", w.thread, err)
		}
		if !harness.SleepContext(ctx, 20*time.Millisecond) {
			if wait {
				return nil
			}
			return ctx.Err()
		}
	}
}

// newWatchRequest asks for what comes after what was seen.
func (w *lossWatcher) newWatchRequest(wait bool) *graphdv1.WatchRequest {
	req := &graphdv1.WatchRequest{ThreadId: w.thread, Filter: harness.StoredEvents(), Follow: wait}
	if req.Start = (&graphdv1.WatchRequest_Beginning{Beginning: &emptypb.Empty{}}); w.cursor != nil {
		req.Start = &graphdv1.WatchRequest_After{After: w.cursor}
	}
	return req
}

func (w *lossWatcher) recordEvent(e *event) {
	w.cursor = e.GetCursor()
	if !e.GetEphemeral() {
		w.seen = append(w.seen, eventText(e))
	}
}

type event = graphdv1.Event

// eventText is an event that can be compared.
func eventText(e *event) string {
	return fmt.Sprintf("%d %s %T %s", e.GetCursor().GetSequence(), e.GetTime().AsTime().Format(time.RFC3339Nano), e.GetKind(), e.GetNode())
}

// verifySeen compares what the witness believes with what there is.
func (w *lossWatcher) verifySeen(ctx context.Context) error {
	if err := w.followLog(ctx, false); err != nil {
		return err
	}
	fresh := &lossWatcher{threadDriver: w.threadDriver}
	if err := fresh.followLog(ctx, false); err != nil {
		return err
	}
	if !slices.Equal(w.seen, fresh.seen) {
		return fmt.Errorf("a follower of %s was not told that it saw what was lost:\n%q\n%q", w.thread, w.seen, fresh.seen)
	}
	return nil
}

// driveUntilSafe drives a thread to its end over and over, until nothing can get
// lost any more. It counts what it has heard.
func (d *threadDriver) driveUntilSafe(ctx context.Context, safe <-chan struct{}) (*graphdv1.Run, error) {
	harness.SleepContext(ctx, d.startDelay)
	answered, finished := false, false
	for {
		d.runID = ""
		if err := d.startRun(ctx); err != nil {
			return nil, err
		}
		settled := isClosed(safe)
		run, err := d.waitStopped(ctx)
		switch {
		case harness.ReasonOf(err) == "RUN_NOT_FOUND" || harness.ReasonOf(err) == "THREAD_NOT_FOUND":
			d.tally.CountEvent("people told that a run is gone")
			answered, finished = false, false
		case err != nil:
			return run, err
		case harness.IsEnded(run.GetState()):
			finished = true
			if settled {
				return run, nil
			}
		case len(run.GetOpenInterruptIds()) != 1:
			// The run was read before something was lost, and its interrupts after.
			d.tally.CountEvent("people shown a run that stands still and asks nothing")
		default:
			if finished {
				d.tally.CountEvent("people shown that an ended run goes on")
			} else if answered {
				d.tally.CountEvent("people shown that an answered question is open")
			}
			answered, finished = false, false
			harness.SleepContext(ctx, d.answerDelay)
			d.interruptID = run.GetOpenInterruptIds()[0]
			_, err := d.resumeRun(ctx, "answer-"+d.thread, "person 0", d.answerWord())
			switch harness.ReasonOf(err) {
			case "OK":
				answered = true
			case "RUN_NOT_FOUND", "THREAD_NOT_FOUND", "INTERRUPT_NOT_FOUND", "THREAD_NOT_INTERRUPTED":
				d.tally.CountEvent("people told that a question is gone")
			default:
				return run, err
			}
		}
		harness.SleepContext(ctx, 50*time.Millisecond)
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
