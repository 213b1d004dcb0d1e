package superstep

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// Why a live run is stopped from outside: the causes of the end of its context.
var (
	ErrLeaseLost      = &HandOffError{reason: "the lease of the thread is lost"}
	ErrServerDrains   = &HandOffError{reason: "the server is draining"}
	ErrMovedToWorkers = &HandOffError{reason: "the run goes on at a server that has its workers", isMoved: true}
	ErrUnserved       = &HandOffError{reason: "no server has a worker for what the run waits for"}
	ErrRunCancelled   = errors.New("the run is cancelled")
	ErrRunTimedOut    = errors.New("the run has run out of time")
)

// HandOffError is why a run ends here and goes on at another server, or later.
type HandOffError struct {
	reason  string
	isMoved bool
}

func (e *HandOffError) Error() string { return e.reason }

// Is makes it ErrElsewhere, and ErrMoved if it is.
func (e *HandOffError) Is(target error) bool {
	return target == runtime.ErrElsewhere || e.isMoved && target == runtime.ErrMoved
}
