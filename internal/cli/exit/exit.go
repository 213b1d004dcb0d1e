package exit

import (
	"errors"
	"fmt"
)

// Exit codes of graphd.
const (
	CodeDone    = 0
	CodeError   = 1 // something else went wrong
	CodeUsage   = 2 // the command line is wrong
	CodeWaiting = 3 // the run waits for a person
	CodeFailed  = 4 // the run failed
)

// StatusError is a command that has said everything and ends with a code.
type StatusError struct{ Code int }

// Error names the code.
func (e *StatusError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// UsageError is a command line that is wrong.
type UsageError struct {
	Message string
	Hint    string // what would be right; may be empty
}

// Error returns the message.
func (e *UsageError) Error() string { return e.Message }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of the error that says what would be right.
func (e *UsageError) WithHint(format string, args ...any) *UsageError {
	return &UsageError{Message: e.Message, Hint: fmt.Sprintf(format, args...)}
}

// HintError is an error with words for what helps.
type HintError struct {
	Err  error
	Hint string
}

// Error returns the error's message.
func (e *HintError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *HintError) Unwrap() error { return e.Err }

// CodeOf is what the process ends with after err.
func CodeOf(err error) int {
	var ended *StatusError
	var usage *UsageError
	switch {
	case err == nil:
		return CodeDone
	case errors.As(err, &ended):
		return ended.Code
	case errors.As(err, &usage):
		return CodeUsage
	}
	return CodeError
}
