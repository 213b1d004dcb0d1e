// Package contain keeps a panic from ending the process: it ends the work in
// which it came up, and the starter of that work is told.
//
// Every goroutine and timer of the packages that touch what users send runs
// through Func; internal/arch holds them to it.
package contain

import (
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// PanicError is a panic that was caught.
type PanicError struct {
	Value string // what was panicked with, as text
	Stack []byte
}

// Error says what was panicked with. It is for logs, never for clients.
func (p *PanicError) Error() string { return "panic: " + p.Value }

// Fields are the panic and its stack for a log line.
func (p *PanicError) Fields() []zap.Field {
	return []zap.Field{zap.String("panic", p.Value), zap.ByteString("stack", p.Stack)}
}

// maxValueBytes bounds the text of a panic: the value may be what a user has sent.
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

// Func returns f for a goroutine or a timer: a panic ends f, and caught is told.
// A panic of caught ends caught.
func Func(f func(), caught func(*PanicError)) func() {
	return func() {
		if p := Call(f); p != nil {
			_ = Call(func() { caught(p) })
		}
	}
}

// LogPanic returns a caught for Func that writes a line at level error.
func LogPanic(log *zap.Logger, what string) func(*PanicError) {
	return func(p *PanicError) { log.Error(what, p.Fields()...) }
}

// NewPanicError is the panic that recover has just returned as v.
func NewPanicError(v any) *PanicError {
	text := fmt.Sprint(v) // also when its own methods panic
	if len(text) > maxValueBytes {
		text = text[:maxValueBytes] + "…"
	}
	return &PanicError{Value: text, Stack: debug.Stack()}
}
