package pregel

import (
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
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
	// Secret are JSON pointers to the parts of Value, Default and of the answer that not everybody
	// sees. HideSecrets moves those of Value and Default into Hidden.
	Secret   []string
	Hidden   checkpoint.Hidden
	isHidden bool
}

// HideSecrets takes the secret parts out of the value and the default answer. Called again it changes
// nothing. The error says what is wrong with the pointers.
func (a *Ask) HideSecrets() error {
	if len(a.Secret) == 0 || a.isHidden {
		return nil
	}
	if problems := redact.CheckPointers(a.Secret); len(problems) > 0 {
		return errors.New("secret: " + problems[0].Text)
	}
	value, hiddenValue, err := redact.Hide(a.Value, a.Secret)
	if err != nil {
		return errors.New("secret: the value of the question is not JSON")
	}
	answer, hiddenAnswer, err := redact.Hide(a.Default, a.Secret)
	if err != nil {
		return errors.New("secret: the default answer is not JSON")
	}
	a.Value, a.Default = value, answer
	a.Hidden.Value, a.Hidden.Default, a.isHidden = hiddenValue, hiddenAnswer, true
	return nil
}

// HiddenDigest returns the digest of the value with its secret parts, as that of an interrupt with an
// id; "" when nothing in it is secret.
func (a *Ask) HiddenDigest(id string) string {
	asked := checkpoint.Interrupt{ID: id, Value: a.Value, Hidden: a.Hidden, DriftIgnore: a.DriftIgnore}
	return asked.HiddenDigest()
}

// UsedAnswer is one answer that an attempt has used.
type UsedAnswer struct {
	Scope       string
	Key         string
	Index       int
	AskedDigest string // digest of the question of the attempt
	// HiddenDigest is the digest of its value with the secret parts, "" = nothing is secret.
	HiddenDigest string
	Asked        *Ask // its question, if that differs from the shown question; else nil
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
	ShownDigest string // digest of the shown question
	// HiddenDigest is the digest of its value with the secret parts, "" = nothing is secret.
	HiddenDigest string
	HasSecrets   bool                  // Value has secret parts
	Asked        *checkpoint.Interrupt // the interrupt as it was asked, nil = known by its digest only
}

// Journal is the record that a task must see again when it runs from its first
// line.
type Journal struct {
	Answers []Answer
	Memos   []checkpoint.Memo
}
