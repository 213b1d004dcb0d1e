package pregel

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Result is the outcome of one attempt of a task. Exactly one of three cases
// holds: Failure is set, Asks or Waiting is not empty, or the attempt completed.
type Result struct {
	// Update is an object with a value per channel, or, for a graph whose
	// state is one value, that value. "" and null update nothing.
	Update payload.JSON
	// Writes follow Update. They allow several values for one channel.
	Writes []checkpoint.Write
	Goto   []checkpoint.Send
	// ToParent hands Update, Writes and Goto to the enclosing graph instead.
	ToParent bool

	Asks    []Ask
	Failure *Failure
	// WaitingInterrupts lists the open interrupts of a paused subgraph. Its node continues
	// when any of them is answered.
	WaitingInterrupts []string
	// Cached is true for an older result of the node, which was not run.
	Cached bool
	// UsedAnswers lists answers that the attempt has used. Code that is run in this
	// process names only those that it has used for something else than was shown.
	UsedAnswers []UsedAnswer
	// CombinedValues holds, for conditional edges, the values of channels that a
	// worker has combined with the writes of the attempt. The engine fills it
	// in.
	CombinedValues map[string]payload.JSON
}

// Failure is a failed attempt: the stored part and the fields for the retry
// policy.
type Failure struct {
	checkpoint.Failure

	BaseTypes  []string      // further types of the node's error, for retry policies
	Permanent  bool          // never retry
	RetryAfter time.Duration // at least this long before the next attempt
}
