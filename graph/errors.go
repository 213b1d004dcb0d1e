package graph

import (
	"fmt"
	"strconv"
	"time"
)

// Interrupted says that a question waits for its answer. A function returns
// it, wrapped or not; it is no failure.
type Interrupted struct { //nolint:errname // it is an error by type only, never a failure
	Scope string
	Key   string
	Index int // n-th question of the scope, or n-th use of the key, from 0
}

// Error names the question.
func (e *Interrupted) Error() string {
	return "waiting for the answer to " + questionPosition(e.Scope, e.Key, e.Index)
}

// DismissedError says that a question was dismissed.
type DismissedError struct {
	Question string
	Note     string // why, in the words of who dismissed it
}

// Error names the question and the note.
func (e *DismissedError) Error() string {
	if e.Note == "" {
		return e.Question + " was dismissed"
	}
	return e.Question + " was dismissed: " + e.Note
}

// ExpiredError says that a question was not answered in time.
type ExpiredError struct {
	Question string
}

// Error names the question.
func (e *ExpiredError) Error() string { return e.Question + " expired without an answer" }

// NonDeterministicError says that the function does something else on replay
// than it did before. The task fails, even if the function swallows it.
type NonDeterministicError struct {
	Before string // in the record
	Now    string // in this attempt
}

// Error names both.
func (e *NonDeterministicError) Error() string {
	return fmt.Sprintf("the replay differs: before it was %s, now it is %s; "+
		"the same calls must come in the same order, or carry keys", e.Before, e.Now)
}

func questionPosition(scope, key string, index int) string {
	text := "question " + strconv.Itoa(index+1)
	if key != "" {
		text += " of key " + strconv.Quote(key)
	}
	if scope != "" {
		text += " in scope " + strconv.Quote(scope)
	}
	return text
}

// PermanentError is a failure that no retry can mend.
type PermanentError struct{ Err error }

// Error is that of the cause.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent keeps the retry policy from repeating the attempt; nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// RetryError is a failure that should not be retried at once.
type RetryError struct {
	Err   error
	After time.Duration
}

// Error is that of the cause.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RetryError) Unwrap() error { return e.Err }

// RetryAfter makes the next attempt, if the policy allows it, wait at least this
// long; nil stays nil.
func RetryAfter(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &RetryError{Err: err, After: after}
}

// TypedError gives a failure the type that retry policies name.
type TypedError struct {
	Type string
	Err  error
}

// Error is that of the cause.
func (e *TypedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TypedError) Unwrap() error { return e.Err }

// OfType gives a failure a type for retry policies; without it the type is the
// name of the error's Go type. nil stays nil.
func OfType(name string, err error) error {
	if err == nil {
		return nil
	}
	return &TypedError{Type: name, Err: err}
}
