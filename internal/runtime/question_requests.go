package runtime

import "time"

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
