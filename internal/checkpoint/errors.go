package checkpoint

import "errors"

// What a store may answer besides success.
var (
	ErrThreadNotFound     = errors.New("thread not found")
	ErrCheckpointNotFound = errors.New("checkpoint not found")
	ErrRunNotFound        = errors.New("run not found")
	ErrInterruptNotFound  = errors.New("interrupt not found")
	ErrRequestNotFound    = errors.New("request not found")
	ErrGraphExists        = errors.New("graph version exists with other content")
	// ErrConflict says that the thread is not at the expected revision.
	ErrConflict = errors.New("thread was changed by somebody else")
	// ErrInvalid says that a Change contradicts itself or does not continue the
	// thread: the caller has a defect. Nothing was applied.
	ErrInvalid = errors.New("change is not valid")
	// ErrTrimmed says that events after the given number are gone.
	ErrTrimmed = errors.New("event log was trimmed")
	// ErrUnavailable says that the store did not answer; whether a change was
	// applied is unknown until it is repeated or looked up.
	ErrUnavailable = errors.New("store unavailable")
	// ErrCorrupt says that a stored record can't be read.
	ErrCorrupt = errors.New("stored record is corrupt")
)
