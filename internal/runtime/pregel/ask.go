package pregel

import (
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
)

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
	Policy    *approval.Policy // who may answer and how many must, nil = everybody, and one
	Priority  approval.Priority
	Steps     []approval.Step // what happens while a question is undecided
	Undo      *time.Duration  // how long an answer can be taken back, nil = as the server says
	// Drift is the policy for a replay that asks something else at this place.
	// DriftIgnore lists the parts that may differ.
	Drift       checkpoint.Drift
	DriftIgnore []string
}

// UsedAnswer is one answer that an attempt has used.
type UsedAnswer struct {
	Scope       string
	Key         string
	Index       int
	AskedDigest string // digest of the question of the attempt
	Asked       *Ask   // its question, if that differs from the shown question; else nil
}

// Answer is the reply to an Ask, matched by the same scope, key and index.
type Answer struct {
	InterruptID string
	Scope       string
	Key         string
	Index       int
	Value       payload.JSON
	Dismissed   bool // there will be no answer, for Reason
	Expired     bool
	Reason      string
	ShownDigest string                // digest of the shown question
	Asked       *checkpoint.Interrupt // the interrupt as it was asked, nil = known by its digest only
}

// Journal is the record that a task must see again when it runs from its first
// line.
type Journal struct {
	Answers []Answer
	Memos   []checkpoint.Memo
}
