package commit

import (
	"errors"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Tx is one change to a thread while it is being built. It is computed from a
// head, and computed again from a newer head after a conflict.
type Tx struct {
	checkpoint.Change

	Now time.Time
	// Actor is the principal whose call causes the events that are emitted, "" = not known,
	// or the graph itself causes them.
	Actor      string
	LiveEvents []checkpoint.Event // for followers: Events with states filled in
	// LiveOutput is the output of a run that the change makes wait, for followers; "" = none asks for it.
	LiveOutput payload.JSON
	redactions []redaction // stored in place of parts of the change
	waitingRun string      // that may go on by itself before the change, "" = none
}

// Build adds to a change. It may be called several times and must not have
// effects of its own.
type Build func(t *Tx) error

// ErrNoChange is the error of a Build without anything to change.
var ErrNoChange = errors.New("no change")

// NewTx makes an empty change from a head.
func NewTx(head *checkpoint.Head, now time.Time) *Tx {
	return new(Tx).StartFrom(head, now)
}

// StartFrom resets t to an empty change from a head.
func (t *Tx) StartFrom(head *checkpoint.Head, now time.Time) *Tx {
	from := *head // it may be the head of t
	*t = Tx{Now: now}
	t.Thread, t.Expect, t.LogID, t.Head = from.Thread, from.Revision, from.LogID, from
	t.Head.Updated = now
	if from.State == checkpoint.ThreadInterrupted && from.MayGoOn() {
		t.waitingRun = from.Run
	}
	return t
}

// EmitEvent appends a durable event. It sets the number and the time of the event, and
// its run and its actor when the event names none.
func (t *Tx) EmitEvent(e checkpoint.Event) {
	t.Head.LastEvent++
	e.Seq, e.Time = t.Head.LastEvent, t.Now
	e.Interrupts = asEventsHave(e.Interrupts)
	if e.Run == "" {
		e.Run = t.Head.Run
	}
	if e.Actor == "" {
		e.Actor = t.Actor
	}
	if t.LiveEvents == nil {
		t.GrowEvents(UsualEvents)
	}
	t.LiveEvents = append(t.LiveEvents, e)
}

// GrowEvents grows the capacity for events: they are large, and soon copied more
// often than emitted.
func (t *Tx) GrowEvents(n int) { t.LiveEvents = slices.Grow(t.LiveEvents, n) }

// EventRoom returns the number of events for which the capacity need not grow.
func (t *Tx) EventRoom() int { return cap(t.LiveEvents) - len(t.LiveEvents) }

// redaction is the stored value of an event that is not to be stored as followers
// see it.
type redaction struct {
	event int
	value payload.JSON
}

// EmitRedacted appends a durable event for followers. The log stores kept in place of its
// value.
func (t *Tx) EmitRedacted(e checkpoint.Event, kept payload.JSON) {
	t.EmitEvent(e)
	if kept != e.Value {
		t.redactions = append(t.redactions, redaction{len(t.LiveEvents) - 1, kept})
	}
}

// UsualEvents is the usual number of events of a superstep with one task.
const UsualEvents = 5

// NextCheckpointID returns the id and the number of the next checkpoint of the thread.
func (t *Tx) NextCheckpointID() (id string, seq uint64) {
	t.Head.Seq++
	return pregel.CheckpointID(t.Thread, t.Head.LogID, t.Head.Seq), t.Head.Seq
}

// trimEvents drops the oldest events of a log that has grown well beyond its limit.
func (t *Tx) trimEvents(limit uint64) {
	if kept := t.Head.LastEvent + 1 - max(t.Head.FirstEvent, 1); limit > 0 && kept > limit+limit/4 {
		t.TrimEvents = t.Head.LastEvent + 1 - limit
		t.Head.FirstEvent = t.TrimEvents
	}
}

// buildChange prepares the change for the store. The log keeps events without the
// state they show: it is in the checkpoint already.
func (t *Tx) buildChange(op string) *checkpoint.Change {
	t.Op = op
	t.RecordTrails()
	t.Events = t.LiveEvents
	if len(t.redactions) > 0 {
		t.Events = stripStates(t.LiveEvents)
		for _, s := range t.redactions {
			t.Events[s.event].Value = s.value
		}
		return &t.Change
	}
	for i := range t.LiveEvents {
		if isStateInCheckpoint(&t.LiveEvents[i]) && t.LiveEvents[i].Value != "" {
			t.Events = stripStates(t.LiveEvents)
			break
		}
	}
	return &t.Change
}

// isStateInCheckpoint reports whether an event shows a state that can be read from
// the checkpoint it names.
func isStateInCheckpoint(e *checkpoint.Event) bool {
	return e.Checkpoint != "" && (e.Kind == checkpoint.EventValues || e.Kind == checkpoint.EventTask)
}

func stripStates(events []checkpoint.Event) []checkpoint.Event {
	out := make([]checkpoint.Event, len(events))
	copy(out, events)
	for i := range out {
		if isStateInCheckpoint(&out[i]) {
			out[i].Value = ""
		}
	}
	return out
}
