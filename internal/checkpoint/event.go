package checkpoint

import (
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// EventKind is the kind of an event.
type EventKind string

// Kinds of events in the durable log.
const (
	EventRunState   EventKind = "run_state"
	EventUpdate     EventKind = "update"
	EventValues     EventKind = "values" // the state is read from Checkpoint
	EventTask       EventKind = "task"
	EventCheckpoint EventKind = "checkpoint"
	EventInterrupt  EventKind = "interrupt"
	EventResolved   EventKind = "resolved"
	EventCustom     EventKind = "custom"
	EventMessage    EventKind = "message" // ephemeral unless the node says otherwise
)

// Event is an entry of a thread's log. Sequence numbers grow by 1.
type Event struct {
	Seq       uint64 // set by the store's caller; Head.LastEvent is the last
	Time      time.Time
	Kind      EventKind
	Run       string
	Namespace string
	Step      int
	Node      string
	Task      string
	Attempt   int
	// Actor is the principal whose call caused the event, "" = not known, or the graph
	// itself caused it.
	Actor string
	// Ephemeral events are never stored; Seq is that of the durable event
	// before them.
	Ephemeral bool
	Cached    bool // update: not run again, result taken from the store

	State      RunState      // run_state
	Phase      Phase         // task
	Failure    *Failure      // run_state, task
	Delay      time.Duration // task: until the retry
	Name       string        // custom
	Value      payload.JSON  // update, custom, message; task: the task's input or result
	Checkpoint string        // values, checkpoint
	Parent     string        // checkpoint
	Source     Source        // checkpoint
	Next       []NextTask    // checkpoint
	Interrupts []Interrupt   // interrupt, resolved
	Triggers   []string      // task
}

// Phase is the phase of a task that an event reports.
type Phase string

// Phases of a task.
const (
	PhaseScheduled   Phase = "scheduled"
	PhaseStarted     Phase = "started"
	PhaseRetrying    Phase = "retrying"
	PhaseSucceeded   Phase = "succeeded"
	PhaseFailed      Phase = "failed"
	PhaseInterrupted Phase = "interrupted"
	PhaseCancelled   Phase = "cancelled"
	PhaseUnassigned  Phase = "unassigned" // no worker can take it now
	PhaseRestarted   Phase = "restarted"  // its earlier reports are void
)
