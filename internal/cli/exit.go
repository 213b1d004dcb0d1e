package cli

import (
	"errors"
	"fmt"
)

// Exit codes of graphd.
const (
	ExitDone    = 0
	ExitError   = 1 // something else went wrong
	ExitUsage   = 2 // the command line is wrong
	ExitWaiting = 3 // the run waits for a person
	ExitFailed  = 4 // the run failed
)

// ExitCodeError is a command that has said everything and ends with a code.
type ExitCodeError struct{ Code int }

// Error names the code.
func (e *ExitCodeError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

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

// ExitCode is what the process ends with after err.
func ExitCode(err error) int {
	var ended *ExitCodeError
	var usage *UsageError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &ended):
		return ended.Code
	case errors.As(err, &usage):
		return ExitUsage
	}
	return ExitError
}
