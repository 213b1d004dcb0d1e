package runtime

import (
	"context"
	"errors"
	"strconv"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// StoreRefusal returns the refusal for an error of a store that takes no changes, or not
// this change. It returns nil for other errors, and when the change may have been made.
// The cause names files and keys, for the operator's log.
func StoreRefusal(err error) *Error {
	switch {
	case errors.Is(err, checkpoint.ErrOutcomeUnknown):
		return nil
	case errors.Is(err, checkpoint.ErrStoreReplaced):
		return Errorf(ReasonStoreReplaced, "the store is no longer the one that this server opened; "+
			"it takes no changes until an operator acts: the server's log says how").WithCause(err)
	case errors.Is(err, checkpoint.ErrStoreFull):
		return Errorf(ReasonStoreFull, "the store has no space left, and nothing was changed; "+
			"threads can be read and deleted: call again with the same request id when there is space").WithCause(err)
	case errors.Is(err, checkpoint.ErrStoreBusy):
		return Errorf(ReasonStoreBusy, "the store has more changes to write than it can, and nothing was changed; "+
			"call again with the same request id").WithCause(err)
	}
	if size, ok := errors.AsType[*checkpoint.SizeError](err); ok {
		return Errorf(ReasonChangeTooLarge, "%s; nothing was changed", size).
			WithLimit(size.Limit, int64(size.Max), int64(size.Actual)).WithCause(err)
	}
	return nil
}

// outcomeUnknownError returns the error for a client whose change has an unknown
// outcome.
func outcomeUnknownError(err error) *Error {
	return Errorf(ReasonOutcomeUnknown, "the store did not answer in time, and the outcome is unknown: call again with the same "+
		"request id, which finds what was done or does it once; without a request id read the thread first").WithCause(err)
}

// LimitRefusal refuses a call that exceeds a limit. field is the part of the
// call that exceeds it.
func LimitRefusal(field string, limit *graph.LimitError) *Error {
	e := Errorf(ReasonInvalidField, "%s", limit.Problem)
	switch limit.Limit {
	case pregel.LimitValue, pregel.LimitState, pregel.LimitTenantState, pregel.LimitWrites:
		e = Errorf(ReasonPayloadTooLarge, "%s", limit.Problem).
			With("field", field).With("sizeBytes", strconv.FormatInt(limit.Needed, 10)).With("limitBytes", strconv.FormatInt(limit.Max, 10))
	default:
		e = e.With("field", field).WithViolation(field, "%s", limit.Problem)
	}
	if limit.Limit == pregel.LimitTenantState {
		e = e.With("of", "tenant")
	}
	return e.WithLimit(limit.ExceededLimit())
}

// IsStoreFault reports whether the cause of a refusal is the store, not the
// request. The same request may succeed later.
func (e *Error) IsStoreFault() bool {
	return e.Reason == ReasonStoreUnavailable || e.Reason == ReasonOutcomeUnknown || e.IsStoreRefusing() || e.Reason == ReasonStoreBusy
}

// IsStoreRefusing reports whether a refusal means that the store takes no
// changes.
func (e *Error) IsStoreRefusing() bool {
	return e.Reason == ReasonStoreReplaced || e.Reason == ReasonStoreFull
}

// IsStoreFault reports whether an attempt failed because of the store, for any
// thread. A change that is too large is a fault of its thread.
func IsStoreFault(err error) bool {
	if errors.Is(err, checkpoint.ErrUnavailable) {
		return true
	}
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.IsStoreFault()
}

// TranslateStoreError converts an error of a store to an *Error for clients.
func TranslateStoreError(err error) error {
	if refused := StoreRefusal(err); refused != nil {
		return refused
	}
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrConflict):
		return err
	case errors.Is(err, checkpoint.ErrTrimmed):
		return Errorf(ReasonCursorTrimmed, "events after this cursor are gone; ask for a snapshot first").WithCause(err)
	case errors.Is(err, checkpoint.ErrInvalid):
		return Errorf(ReasonInternal, "the engine made a change that contradicts the thread; nothing was stored").WithCause(err)
	case errors.Is(err, checkpoint.ErrCheckpointNotFound), errors.Is(err, checkpoint.ErrRunNotFound):
		return Errorf(ReasonCheckpointCorrupt, "a record that the thread refers to is missing").WithCause(err)
	case errors.Is(err, checkpoint.ErrCorrupt):
		return Errorf(ReasonCheckpointCorrupt, "a stored record of the thread can't be read").WithCause(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, checkpoint.ErrOutcomeUnknown):
		return outcomeUnknownError(err)
	default:
		return Errorf(ReasonStoreUnavailable, "the store does not answer: call again, a change with the same request id").WithCause(err)
	}
}
