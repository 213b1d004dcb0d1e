package runtime

import (
	"errors"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Kinds of emissions that relate the next emissions of an executor to the earlier
// emissions. Clients do not see them.
const (
	// EventRestarted: another worker runs the task from its beginning.
	EventRestarted checkpoint.EventKind = "anew"
	// EventWorkerLost: as EventRestarted, and the previous worker was lost while it may
	// have run the task. Its outside effects may happen twice.
	EventWorkerLost checkpoint.EventKind = "lost"
	// EventContinued: the worker that ran the task for an earlier server
	// continues.
	EventContinued checkpoint.EventKind = "continued"
)

// FollowRequest is the position from which to read a thread's events.
type FollowRequest struct {
	Thread     string
	After      uint64 // exclusive
	Mark       uint32 // of the event After, which must still be the same; 0 = unknown
	WithValues bool   // fill in the state of values events where it is at hand
	WithInputs bool   // fill in the input of scheduled tasks where it is at hand
	WithRecent bool   // keep the newest ephemeral events from before at hand
	WithStop   bool   // keep the questions and the output of a run that stops at hand
	UntilStop  bool   // wait for the stop of a run: events that are none may come later, and together
}

// EventGap reports to a follower that ephemeral events were dropped because it
// was slow. Its value is how many, "" = that is not known. It is never stored.
const EventGap checkpoint.EventKind = "gap"

// GapValue returns the value of an EventGap for so many missing events, 0 = not known.
func GapValue(missing uint64) payload.JSON {
	if missing == 0 {
		return ""
	}
	return payload.JSON(strconv.FormatUint(missing, 10))
}

// MissingEvents returns how many events are missing by an EventGap, 0 = that is not known.
func MissingEvents(gap *checkpoint.Event) uint64 {
	n, _ := strconv.ParseUint(string(gap.Value), 10, 64) // not known
	return n
}

// EventDeleted reports to followers that their thread was deleted. It is never
// stored.
const EventDeleted checkpoint.EventKind = "deleted"

// EventMark returns a value that distinguishes events with the same number. It
// is never 0.
func EventMark(e *checkpoint.Event) uint32 {
	const spread = 0x9e3779b97f4a7c15
	return max(1, uint32((uint64(e.Time.UnixNano())*spread)>>32))
}

// CheckCursorRange checks that the log reaches from the event after a cursor to the event
// at it. The errors are CURSOR_AHEAD and CURSOR_TRIMMED.
func CheckCursorRange(after uint64, head *checkpoint.Head) error {
	switch {
	case after > head.LastEvent:
		return CursorError(ReasonCursorAhead, head, "event %d does not exist, or no more", after)
	case after < CursorBefore(head.FirstEvent):
		return CursorError(ReasonCursorTrimmed, head, "events after %d are gone", after)
	}
	return nil
}

// IsCursorError reports whether err says that the log does not contain a
// cursor.
func IsCursorError(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && slices.Contains([]string{ReasonCursorTrimmed, ReasonCursorAhead, ReasonCursorLost}, refused.Reason)
}

// CursorError returns an *Error that refuses a cursor, with the range of the log.
func CursorError(reason string, head *checkpoint.Head, format string, after uint64) error {
	return Errorf(reason, format+"; begin with snapshot_first", after).
		With("oldestSequence", strconv.FormatUint(head.FirstEvent, 10)).
		With("headSequence", strconv.FormatUint(head.LastEvent, 10))
}

// CursorBefore returns the cursor from which an event is the next.
func CursorBefore(event uint64) uint64 { return max(event, 1) - 1 }

// StoppedRun is a run at the time of its stop, with the interrupts that it waits for.
type StoppedRun struct {
	Run            checkpoint.Run
	OpenInterrupts []string               // ids of interrupts, in the order in which they are listed
	Interrupts     []checkpoint.Interrupt // those interrupts, without revisions; nil = the store has them
	Output         payload.JSON           // of a run that waits; "" = the store has it
}

// IsStopped reports whether a run in this state is idle until a client acts: it
// has ended, or it waits for answers.
func IsStopped(s checkpoint.RunState) bool {
	return s.Terminal() || s == checkpoint.RunInterrupted
}
