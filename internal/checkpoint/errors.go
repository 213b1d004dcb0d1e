package checkpoint

import (
	"errors"
	"fmt"
)

// Errors of a store.
var (
	ErrThreadNotFound     = errors.New("thread not found")
	ErrCheckpointNotFound = errors.New("checkpoint not found")
	ErrRunNotFound        = errors.New("run not found")
	ErrInterruptNotFound  = errors.New("interrupt not found")
	ErrRequestNotFound    = errors.New("request not found")
	ErrGraphNotFound      = errors.New("graph version not found")
	ErrGraphExists        = errors.New("graph version exists with other content")
	// ErrVersionsChanged says that a graph does not have the expected versions.
	ErrVersionsChanged = errors.New("the versions of the graph are not the expected versions")
	// ErrConflict says that the thread is not at the expected revision.
	ErrConflict = errors.New("thread was changed by another writer")
	// ErrInvalid says that a Change contradicts itself or does not continue the
	// thread: the caller has a defect. Nothing was applied.
	ErrInvalid = errors.New("change is not valid")
	// ErrTrimmed says that events after the given number are gone.
	ErrTrimmed = errors.New("event log was trimmed")
	// ErrUnavailable says that the store did not answer; whether a change was
	// applied is unknown until it is repeated or looked up.
	ErrUnavailable = errors.New("store unavailable")
	// ErrOutcomeUnknown says that the answer of the store to a change was lost:
	// it was applied, or it was not. It is a kind of ErrUnavailable.
	ErrOutcomeUnknown = fmt.Errorf("%w: whether the change was applied is unknown", ErrUnavailable)
	// ErrStoreReplaced says that the store is not the store that was opened: its
	// file was removed or replaced, its server came back empty or in another
	// format. It takes no changes until an operator acts. It is a kind of
	// ErrUnavailable: runs wait for the store.
	ErrStoreReplaced = fmt.Errorf("%w: not the store that was opened", ErrUnavailable)
	// ErrStoreFull says that the store has no space for the change, and that
	// nothing was applied. Threads can still be read and deleted. It is a kind of
	// ErrUnavailable: runs wait for space.
	ErrStoreFull = fmt.Errorf("%w: no space left", ErrUnavailable)
	// ErrStoreBusy says that so many changes wait that this change had no turn,
	// and that nothing was applied. It is a kind of ErrUnavailable.
	ErrStoreBusy = fmt.Errorf("%w: too many changes wait", ErrUnavailable)
	// ErrCorrupt says that a stored record can't be read.
	ErrCorrupt = errors.New("stored record is corrupt")
)

// LargeError says that a checkpoint, or the progress after it, is larger than the
// reader allows, and was not read.
type LargeError struct {
	Bytes int    // about how many it holds; 0 = not known
	Seq   uint64 // number of the checkpoint, 0 = of progress
}

// Error says so.
func (e *LargeError) Error() string {
	if e.Seq == 0 {
		return fmt.Sprintf("the progress of a superstep is larger than what is to be read of it: %d bytes", e.Bytes)
	}
	return fmt.Sprintf("checkpoint %d is larger than what is to be read of it: %d bytes", e.Seq, e.Bytes)
}

// SizeError says that a change is larger than the store takes. Nothing was
// applied, and it never will be.
type SizeError struct {
	Limit       string // the option that sets it, like max-change-bytes
	Unit        string // "bytes" or "rows"
	Max, Actual int
}

// Error names the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the change has %d %s, and the store takes %d at most (%s)", e.Actual, e.Unit, e.Max, e.Limit)
}
