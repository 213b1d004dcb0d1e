package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is an error of the server. errors.Is finds its [Reason].
type Error struct {
	// Reason is what to branch on. "" = the server has not been reached, or is no graphd.
	Reason Reason
	Code   codes.Code
	// Message is for people. It names the field, the reason and what would have been right.
	Message string
	// Details are those of the reason, like the field that is wrong.
	Details map[string]string

	cause error
}

// Error has the reason and the message.
func (e *Error) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Reason, e.Message)
}

// Unwrap returns the error of gRPC, for status.FromError.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the reason of the error.
func (e *Error) Is(target error) bool {
	reason, ok := target.(Reason)
	return ok && reason != "" && reason == e.Reason
}

// toError returns an error of gRPC as an *Error; those of the caller's context stay what they are.
func toError(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return FromGRPC(err)
}

// FromGRPC returns an error of a generated call, like those of [Client.Graphs], as an *Error; nil
// stays nil.
func FromGRPC(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	s, _ := status.FromError(err)
	e := &Error{Code: s.Code(), Message: s.Message(), cause: err}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			e.Reason, e.Details = Reason(info.GetReason()), info.GetMetadata()
		}
	}
	return e
}
