package pregel

import (
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Result is what one attempt of a task came to. Exactly one of three things
// holds: Failure is set, Asks or Waiting is not empty, or the attempt completed.
type Result struct {
	// Update is an object with a value per channel, or, for a graph whose
	// state is one value, that value. "" and null update nothing.
	Update payload.JSON
	// Writes follow Update; they allow several values for one channel.
	Writes []checkpoint.Write
	Goto   []checkpoint.Send
	// ToParent hands Update, Writes and Goto to the enclosing graph instead.
	ToParent bool

	Asks    []Ask
	Failure *Failure
	// WaitingInterrupts lists the open interrupts of a subgraph that has paused; its
	// node goes on when one of them is answered.
	WaitingInterrupts []string
	// Cached says that the node was not run: this is an older result of it.
	Cached bool
	// UsedAnswers lists answers that the attempt has used. Code that is run in this
	// process names only those that it has used for something else than was shown.
	UsedAnswers []UsedAnswer
	// CombinedValues holds, for conditional edges, the values of channels that a
	// worker has combined with what the attempt writes. The engine fills it in.
	CombinedValues map[string]payload.JSON
}

// Failure is a failed attempt: the stored part and what the retry policy needs.
type Failure struct {
	checkpoint.Failure

	BaseTypes  []string      // further types that the node's error is of; a retry policy may name them
	Permanent  bool          // never retry
	RetryAfter time.Duration // at least this long before the next attempt
}
