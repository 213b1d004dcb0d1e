package capacity

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// ErrNoCapacity is each NoCapacityError for errors.Is.
var ErrNoCapacity = &NoCapacityError{}

// NoCapacityError says that the server drives as many runs as it may, or that live
// runs hold as much as they may.
type NoCapacityError struct {
	NeedBytes int64 // bytes that the run would hold; 0 = there is no slot
}

func (e *NoCapacityError) Error() string {
	if e.NeedBytes > 0 {
		return "the live runs of the server hold as much as they may"
	}
	return "the server drives as many runs as it may"
}

// Is makes all of them ErrNoCapacity.
func (*NoCapacityError) Is(target error) bool { return target == ErrNoCapacity }

// missingBytes is how many bytes a run needs if memory is what it lacks, else 0.
func missingBytes(err error) int64 {
	if lack, ok := errors.AsType[*NoCapacityError](err); ok {
		return lack.NeedBytes
	}
	return 0
}

// RefusalError is what a caller is told whose run can't begin because of err.
func (c *Limiter) RefusalError(err error) *runtime.Error {
	if need := missingBytes(err); need > 0 {
		return runtime.Errorf(runtime.ReasonTooManyRuns, "the live runs of the server hold as much as they may (--max-live-bytes), and this one would hold %d bytes; "+
			"nothing was stored: try again, or another server", need).WithLimit("max-live-bytes", c.bytes.limit, 0)
	}
	return runtime.Errorf(runtime.ReasonTooManyRuns, "the server drives %d runs, as many as it may (--max-live-runs); nothing was stored: try again, or another server", c.maxRuns).
		WithLimit("max-live-runs", int64(c.maxRuns), 0)
}
