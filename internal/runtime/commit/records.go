package commit

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// StartRun marks a run as running, and adds the event.
func (t *Tx) StartRun(run *checkpoint.Run) {
	t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, Run: run.ID, State: checkpoint.RunRunning})
	if run.FirstEvent == 0 {
		run.FirstEvent = t.Head.LastEvent
	}
	run.State, run.Updated = checkpoint.RunRunning, t.Now
}

// PutBreakpoint adds a breakpoint's pause to a change.
func (t *Tx) PutBreakpoint(q *checkpoint.Interrupt, step int) {
	pause := *q
	pause.Created, pause.Updated = t.Now, t.Now
	t.Interrupts = append(t.Interrupts, pause)
	t.Head.Open++
	t.EmitEvent(checkpoint.Event{
		Kind: checkpoint.EventInterrupt, Namespace: pause.Namespace, Step: step,
		Node: pause.Node, Checkpoint: pause.Checkpoint, Interrupts: []checkpoint.Interrupt{pause},
	})
}

// reportRest reports the state of a run once more that waits, and that the change keeps from
// going on by itself: followers wait for it.
func (t *Tx) reportRest() {
	if t.waitingRun != "" && t.waitingRun == t.Head.Run && t.Head.State == checkpoint.ThreadInterrupted && !t.Head.MayGoOn() {
		t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventRunState, State: checkpoint.RunInterrupted})
	}
}

// EndWait gives a waiting interrupt of the thread the state in which it no longer waits, for
// the interrupts of the change.
func (t *Tx) EndWait(q *checkpoint.Interrupt, to checkpoint.InterruptState) {
	t.Head.Open = max(0, t.Head.Open-1)
	if q.State == checkpoint.InterruptRetractable {
		t.Head.Retractable = max(0, t.Head.Retractable-1)
	}
	q.State, q.Updated = to, t.Now
}

// RecordRunEnd records that the thread's active run has stopped.
func (t *Tx) RecordRunEnd(run *checkpoint.Run) {
	t.Head.PreferredOwner, t.Head.PreferredUntil, t.Head.RemoteTasks = "", time.Time{}, nil
	t.ClearFaults()
	switch run.State {
	case checkpoint.RunInterrupted:
		t.Head.State = checkpoint.ThreadInterrupted
	case checkpoint.RunFailed, checkpoint.RunTimedOut:
		t.Head.State = checkpoint.ThreadFailed
	default:
		t.Head.State = checkpoint.ThreadIdle
	}
	t.EmitEvent(checkpoint.Event{
		Kind: checkpoint.EventRunState, Run: run.ID, State: run.State, Failure: run.Failure,
	})
	run.LastEvent = t.Head.LastEvent
	t.Runs = slices.DeleteFunc(t.Runs, func(r checkpoint.Run) bool { return r.ID == run.ID }) // begun by the same change
	t.Runs = append(t.Runs, *run)
	if t.Head.Cancel != nil && t.Head.Cancel.Run == run.ID {
		t.Head.Cancel = nil
	}
	t.ScheduleBy(RestDueTime(&t.Head))
	if run.State != checkpoint.RunInterrupted && len(t.Head.Queue) > 0 {
		t.ScheduleBy(t.Now)
	}
}

// ScheduleBy makes the thread due at a time at the latest. A zero time has no
// effect.
func (t *Tx) ScheduleBy(at time.Time) {
	if !at.IsZero() && (t.Head.Due.IsZero() || at.Before(t.Head.Due)) {
		t.Head.Due = at
	}
}

// delayQuarantined keeps a quarantined thread from being due before the end of its
// quarantine.
func (t *Tx) delayQuarantined() {
	h := &t.Head
	if h.Faults > 0 && !h.Due.IsZero() && h.Due.Before(h.RetryAt) {
		h.Due = h.RetryAt
	}
}

// ClearFaults clears the faults of a thread that has made progress.
func (t *Tx) ClearFaults() { t.Head.Faults, t.Head.RetryAt = 0, time.Time{} }

// RecordRequest makes the thread remember a request, unless it has no id.
func (t *Tx) RecordRequest(id, digest, run string) {
	if id != "" {
		t.Request = &checkpoint.Request{
			ID: id, Digest: digest, Run: run, Created: t.Now,
			Event: t.Head.LastEvent - uint64(len(t.LiveEvents)),
		}
	}
}

// ChangesInterrupt reports whether the change touches an interrupt already.
func (t *Tx) ChangesInterrupt(interrupt string) bool {
	return slices.ContainsFunc(t.Interrupts, func(i checkpoint.Interrupt) bool { return i.ID == interrupt })
}

// ExpiryTime returns the time at which a thread will be deleted; zero = never, or not before an
// answer has taken effect.
func ExpiryTime(h *checkpoint.Head) time.Time {
	switch {
	case h.Retractable > 0:
	case !h.Expires.IsZero():
		return h.Expires
	case h.TTL > 0:
		return h.Updated.Add(h.TTL)
	}
	return time.Time{}
}

// RestDueTime returns the time at which there is something to do on a thread without a run that goes
// on: it is deleted, or a run begins. Zero = never.
func RestDueTime(h *checkpoint.Head) time.Time {
	due := ExpiryTime(h)
	if len(h.Later) > 0 && (due.IsZero() || h.Later[0].Begins.Before(due)) {
		due = h.Later[0].Begins
	}
	return due
}

// NextRun returns the run of a thread that is active or the next to go on, "" = none.
func NextRun(h *checkpoint.Head) string {
	switch {
	case h.State == checkpoint.ThreadBusy, h.State == checkpoint.ThreadInterrupted:
		return h.Run
	case len(h.Queue) > 0:
		return h.Queue[0]
	}
	return ""
}

// RequireContent returns ErrNoChange for an empty change.
func (t *Tx) RequireContent() error {
	if len(t.LiveEvents) == 0 && len(t.Tasks) == 0 && len(t.Interrupts) == 0 {
		return ErrNoChange
	}
	return nil
}
