package function

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	goruntime "runtime"
	"strings"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// maxMessageBytes bounds the message of a failure, in bytes, because it is stored.
const maxMessageBytes = 8 << 10

// FailedResult returns the result of a failed attempt.
func FailedResult(f *pregel.Failure) pregel.Result { return pregel.Result{Failure: f} }

// PermanentFailure returns a failure that is never retried.
func PermanentFailure(reason, kind, message string) *pregel.Failure {
	return &pregel.Failure{
		Failure:   checkpoint.Failure{Reason: reason, Type: kind, Message: message},
		Permanent: true,
	}
}

// FailureOf converts the error of a function to a failure.
func FailureOf(err error) *pregel.Failure {
	f := &pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: errorType(err), Message: ClipText(err.Error()),
	}}
	var (
		lasting   *api.PermanentError
		later     *api.RetryError
		differs   *api.NonDeterministicError
		dismissed *api.DismissedError
		expired   *api.ExpiredError
		route     *api.RouteError
	)
	f.Permanent = errors.As(err, &lasting)
	if errors.As(err, &later) {
		f.RetryAfter = later.After
	}
	switch {
	case errors.As(err, &differs):
		f.Reason, f.Type, f.Permanent = runtime.FailedNonDeterministic, "NonDeterministic", true
	case errors.As(err, &route):
		f.Reason, f.Type, f.Permanent = runtime.FailedInvalidUpdate, "InvalidResult", true
		f.Details = map[string]string{"target": route.Target}
	case errors.As(err, &dismissed):
		f.Type, f.Permanent = "Dismissed", true
	case errors.As(err, &expired):
		f.Reason, f.Type, f.Permanent = runtime.ReasonInterruptExpired, "InterruptExpired", true
	}
	return f
}

// errorType returns the name by which retry policies know an error: the type that
// it was given, or the name of its Go type without wrappers of the standard
// library.
func errorType(err error) string {
	var typed *api.TypedError
	if errors.As(err, &typed) && typed.Type != "" {
		return typed.Type
	}
	if name := typeName(err); name != "" {
		return name
	}
	return "error"
}

func typeName(err error) string {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.PkgPath() {
	case "errors", "fmt", reflect.TypeFor[api.PermanentError]().PkgPath():
	default:
		return t.Name()
	}
	switch w := err.(type) { //nolint:errorlint // looks at this very error, then at what it wraps
	case interface{ Unwrap() error }:
		if inner := w.Unwrap(); inner != nil {
			return typeName(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range w.Unwrap() {
			if name := typeName(inner); name != "" {
				return name
			}
		}
	}
	return ""
}

// ClipText bounds a text of a failure, and makes it valid UTF-8.
func ClipText(text string) string {
	if len(text) > maxMessageBytes {
		text = text[:maxMessageBytes] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// PanicFailure returns the failure of a node that panicked with p, or left its
// goroutine when p is nil. It must be called by the function that recovered.
func PanicFailure(p any) *pregel.Failure {
	f := &pregel.Failure{Failure: checkpoint.Failure{Reason: runtime.FailedNode, Type: "panic"}}
	if p == nil {
		f.Type, f.Message = "Goexit", errNoResult.Error()
		return f
	}
	f.Message, f.Stack = ClipText("panic: "+panicText(p)), panicStack()
	return f
}

// panicText returns the text of a value, also if its methods panic.
func panicText(p any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("a %T whose text panics as well", p)
		}
	}()
	if err, ok := p.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(p)
}

// panicStack lists the frames between the panic and the executor, innermost first,
// at most 20, without those of the Go runtime.
func panicStack() string {
	const most = 20
	pcs := make([]uintptr, 128)
	frames := goruntime.CallersFrames(pcs[:goruntime.Callers(1, pcs)])
	var lines []string
	panicking := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			lines, panicking = nil, true
		case !panicking || strings.HasPrefix(frame.Function, "runtime."):
		case strings.HasPrefix(frame.Function, ownFramePrefix), strings.HasPrefix(frame.Function, nodeFramePrefix):
			more = false
		case len(lines) < most:
			lines = append(lines, fmt.Sprintf("%s %s:%d", frame.Function,
				path.Join(path.Base(path.Dir(frame.File)), path.Base(frame.File)), frame.Line))
		}
		if !more {
			return strings.Join(lines, "\n")
		}
	}
}

// The names of this package's functions, and of its callers, begin with these. The frames below
// them are not of the author of a node.
const (
	nodeFramePrefix = "github.com/graphd-dev/graphd/internal/node."
	ownFramePrefix  = "github.com/graphd-dev/graphd/internal/node/function."
)
