package exit

import (
	"errors"
	"fmt"
)

// Exit codes of graphd.
const (
	CodeDone    = 0
	CodeError   = 1 // any other error
	CodeUsage   = 2 // the command line is wrong
	CodeWaiting = 3 // the run waits for a person
	CodeFailed  = 4 // the run failed
)

// StatusError ends a command with a code, after the command has printed everything.
type StatusError struct{ Code int }

// Error returns the code as text.
func (e *StatusError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// UsageError is an error of the command line.
type UsageError struct {
	Message string
	Hint    string // a correct command line; may be empty
}

// Error returns the message.
func (e *UsageError) Error() string { return e.Message }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) *UsageError {
	return &UsageError{Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy of the error with a hint at a correct command line.
func (e *UsageError) WithHint(format string, args ...any) *UsageError {
	return &UsageError{Message: e.Message, Hint: fmt.Sprintf(format, args...)}
}

// HintError is an error with a hint at a remedy.
type HintError struct {
	Err  error
	Hint string
}

// Error returns the error's message.
func (e *HintError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *HintError) Unwrap() error { return e.Err }

// CodeOf returns the exit code of the process after err.
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
