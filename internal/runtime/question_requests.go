package runtime

import (
	"fmt"
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/trail"
)

// Question names a question of a thread.
type Question struct {
	Thread    string
	Interrupt string
}

// UpdateInterruptRequest changes the fields of an open interrupt that a caller
// may change.
type UpdateInterruptRequest struct {
	Question

	Etag      uint64     // revision the interrupt must be at, 0 = any
	Assignees *[]string  // nil = stays
	Expires   *time.Time // nil = stays, zero = never
	EndsClaim bool       // of any holder
	By        Actor
}

// Durations of claims.
const (
	DefaultClaim = 15 * time.Minute
	MaxClaim     = 24 * time.Hour
)

// ClaimRequest claims an open question for the caller.
type ClaimRequest struct {
	Question

	Duration time.Duration
	By       Actor
}

// ReleaseRequest gives up the claim of the caller.
type ReleaseRequest struct {
	Question

	Note string
	By   Actor
}

// CheckedResponse is what an answer would do.
type CheckedResponse struct {
	Interrupt    string
	Decides      bool
	IsRepeated   bool // the same answer of the caller is stored already
	MissingVotes int  // so many more votes like it would decide
	Undo         time.Duration
}

// RevealRequest asks for the secret parts of a question.
type RevealRequest struct {
	Question

	Pointers []string // of the question's own; none = all
	Note     string
	By       Actor
}

// Revealed is a question with its secret parts. It is never stored or logged.
type Revealed struct {
	Value    payload.JSON
	Default  payload.JSON
	Response payload.JSON
	Entry    trail.Entry
}

// Format shows none of the parts, whatever the verb.
func (Revealed) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("(secret)")) }

// MarshalText shows none of the parts in JSON and in logs.
func (Revealed) MarshalText() ([]byte, error) { return []byte("(secret)"), nil }

// DelegateRequest hands the caller's part in a question to another user.
type DelegateRequest struct {
	Question

	To   string
	Note string
	By   Actor
}

// RetractRequest takes the answer or the vote of the caller back.
type RetractRequest struct {
	Question

	Note string
	By   Actor
}

// CommentRequest adds a comment to a question.
type CommentRequest struct {
	Question

	Text      string
	RequestID string // "" = none
	By        Actor
}
