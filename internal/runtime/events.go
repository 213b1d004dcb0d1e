package runtime

import (
	"errors"
	"slices"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Kinds of emissions by which an executor says how what it emits next relates
// to what was emitted before. Clients see neither.
const (
	// EventRestarted: another worker runs the task from its beginning.
	EventRestarted checkpoint.EventKind = "anew"
	// EventWorkerLost: the same, and the worker before was lost while it may have run the
	// task: what it did outside may be done again.
	EventWorkerLost checkpoint.EventKind = "lost"
	// EventContinued: the worker that ran the task for an earlier server goes on.
	EventContinued checkpoint.EventKind = "continued"
)

// FollowRequest says where to begin reading a thread's events.
type FollowRequest struct {
	Thread     string
	After      uint64 // exclusive
	Mark       uint32 // of the event After, which must still be the same; 0 = unknown
	WithValues bool   // fill in the state of values events where it is at hand
	WithInputs bool   // fill in what scheduled tasks see where it is at hand
}

// EventGap tells a follower that ephemeral events were dropped because it was
// slow. It is never stored.
const EventGap checkpoint.EventKind = "gap"

// EventDeleted tells followers that their thread is gone. It is never stored.
const EventDeleted checkpoint.EventKind = "deleted"

// EventMark tells an event from another one that has its number. It is never 0.
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

// IsCursorError reports whether an error says that a cursor is not in the log.
func IsCursorError(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && slices.Contains([]string{ReasonCursorTrimmed, ReasonCursorAhead, ReasonCursorLost}, refused.Reason)
}

// CursorError refuses a cursor, and says how far the log reaches.
func CursorError(reason string, head *checkpoint.Head, format string, after uint64) error {
	return Errorf(reason, format+"; begin with snapshot_first", after).
		With("oldestSequence", strconv.FormatUint(head.FirstEvent, 10)).
		With("headSequence", strconv.FormatUint(head.LastEvent, 10))
}

// CursorBefore is the cursor after which an event is the first.
func CursorBefore(event uint64) uint64 { return max(event, 1) - 1 }

// StoppedRun is a run as it was when it stopped, and the interrupts that it waits for.
type StoppedRun struct {
	Run            checkpoint.Run
	OpenInterrupts []string // ids of interrupts, in the order in which they are listed
}

// IsStopped reports whether a run in this state does nothing until a client makes
// it: it is over, or it waits for people.
func IsStopped(s checkpoint.RunState) bool {
	return s.Terminal() || s == checkpoint.RunInterrupted
}
