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

// Ask is one interrupt of a task.
type Ask struct {
	Scope     string // "" = the whole node; e.g. a tool call id
	Key       string // "" = matched by position
	Index     int    // n-th unkeyed interrupt of the scope, or n-th use of the key
	Reason    string
	Message   string
	Value     payload.JSON
	Schema    payload.JSON // JSON Schema of the answer, "" = any
	TTL       time.Duration
	Expiry    checkpoint.ExpiryAction
	Default   payload.JSON
	Assignees []string
	// Drift says what happens when a replay asks something else at this place,
	// and DriftIgnore which parts may differ.
	Drift       checkpoint.Drift
	DriftIgnore []string
}

// UsedAnswer is one answer that an attempt has used.
type UsedAnswer struct {
	Scope       string
	Key         string
	Index       int
	AskedDigest string // digest of what the attempt asked
	Asked       *Ask   // what it asked, when that is not what was shown; else nil
}

// Failure is a failed attempt: the stored part and what the retry policy needs.
type Failure struct {
	checkpoint.Failure

	BaseTypes  []string      // further types that the node's error is of; a retry policy may name them
	Permanent  bool          // never retry
	RetryAfter time.Duration // at least this long before the next attempt
}

// Answer is the reply to an Ask, matched by the same scope, key and index.
type Answer struct {
	InterruptID string
	Scope       string
	Key         string
	Index       int
	Value       payload.JSON
	Dismissed   bool // there will be no answer; Reason says why
	Expired     bool
	Reason      string
	ShownDigest string                // digest of what was shown
	Asked       *checkpoint.Interrupt // the interrupt as it was asked, nil = known by its digest only
}

// Journal is what a task must see again when it runs from its first line.
type Journal struct {
	Answers []Answer
	Memos   []checkpoint.Memo
}
