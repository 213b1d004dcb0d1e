package runtime

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// StoreRefusal puts into the words of a client why a store takes no changes;
// nil when err is about something else. The cause names files and keys and is
// for the operator's log.
func StoreRefusal(err error) *Error {
	switch {
	case errors.Is(err, checkpoint.ErrStoreReplaced):
		return Errorf(ReasonStoreReplaced, "the store is no longer the one that this server opened; "+
			"it takes no changes until an operator acts: the server's log says how").Because(err)
	case errors.Is(err, checkpoint.ErrStoreFull):
		return Errorf(ReasonStoreFull, "the store has no space left, and nothing was changed; "+
			"threads can be read and deleted: call again with the same request id when there is space").Because(err)
	}
	return nil
}

// outcomeUnknown says what a client can do that was not told what became of its
// change.
func outcomeUnknown(err error) *Error {
	return Errorf(ReasonOutcomeUnknown, "the store did not answer in time, and the outcome is unknown: call again with the same "+
		"request id, which finds what was done or does it once; without a request id read the thread first").Because(err)
}

// StoreAway reports whether a refusal is about the store and not about what was
// asked for: the same may succeed later.
func (e *Error) StoreAway() bool {
	return e.Reason == ReasonStoreUnavailable || e.Reason == ReasonOutcomeUnknown || e.Reason == ReasonStoreReplaced || e.Reason == ReasonStoreFull
}

// storeAway reports whether an attempt failed because of the store, whatever
// thread it was about.
func storeAway(err error) bool {
	if errors.Is(err, checkpoint.ErrUnavailable) || StoreRefusal(err) != nil {
		return true
	}
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.StoreAway()
}
