// Package contain keeps a panic from ending the process. The panic ends the work
// that caused it, and the starter of that work is notified.
//
// Every goroutine and timer of the packages that touch the data of users runs
// through Func; internal/arch checks that.
package contain

import (
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// PanicError is a panic that was caught.
type PanicError struct {
	Value string // the value of the panic, as text
	Stack []byte
}

// Error returns the value of the panic. It is for logs, never for clients.
func (p *PanicError) Error() string { return "panic: " + p.Value }

// Fields returns the panic and its stack for a log line.
func (p *PanicError) Fields() []zap.Field {
	return []zap.Field{zap.String("panic", p.Value), zap.ByteString("stack", p.Stack)}
}

// maxValueBytes bounds the text of a panic, because the value may come from a user.
const maxValueBytes = 1 << 10

// Call runs f. It returns nil, or the panic that ended f.
func Call(f func()) (caught *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			caught = NewPanicError(v)
		}
	}()
	f()
	return nil
}

// Func returns f for a goroutine or a timer. A panic ends f and is passed to
// caught. A panic of caught ends caught.
func Func(f func(), caught func(*PanicError)) func() {
	return func() {
		if p := Call(f); p != nil {
			_ = Call(func() { caught(p) })
		}
	}
}

// LogPanic returns a caught for Func that logs a line at level error.
func LogPanic(log *zap.Logger, what string) func(*PanicError) {
	return func(p *PanicError) { log.Error(what, p.Fields()...) }
}

// NewPanicError returns the PanicError of v, which recover has just returned.
func NewPanicError(v any) *PanicError {
	text := fmt.Sprint(v) // also when its own methods panic
	if len(text) > maxValueBytes {
		text = text[:maxValueBytes] + "…"
	}
	return &PanicError{Value: text, Stack: debug.Stack()}
}
