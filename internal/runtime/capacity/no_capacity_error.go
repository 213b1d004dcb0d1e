package capacity

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// ErrNoCapacity is each NoCapacityError for errors.Is.
var ErrNoCapacity = &NoCapacityError{}

// NoCapacityError refuses a run because the server drives as many runs as it may, because
// it drives as many of one tenant or caller as that may have, because live runs hold as much
// memory as they may, or because it goes down.
type NoCapacityError struct {
	NeedBytes int64  // bytes that the run would hold; 0 = no slot is free
	Tenant    string // which has as many slots as it may; "" = the server has
	// IsOfCaller says that the caller who has started the run has as many slots as it may, and
	// not the tenant.
	IsOfCaller bool
	MostRuns   int64 // of the tenant or the caller
	// IsClosed says that the limiter admits no runs any more.
	IsClosed bool

	caller slotUser // whose run waits, if it is known
}

func (e *NoCapacityError) Error() string {
	switch {
	case e.IsClosed:
		return "the server takes up no runs any more"
	case e.NeedBytes > 0:
		return "the live runs of the server hold as much as they may"
	case e.IsOfCaller:
		return "the server drives as many runs of the caller as it may"
	case e.Tenant != "":
		return "the server drives as many runs of the tenant as it may"
	}
	return "the server drives as many runs as it may"
}

// Is makes all of them ErrNoCapacity.
func (*NoCapacityError) Is(target error) bool { return target == ErrNoCapacity }

// missingBytes returns the bytes that a run needs if memory is missing, else 0.
func missingBytes(err error) int64 {
	if lack, ok := errors.AsType[*NoCapacityError](err); ok {
		return lack.NeedBytes
	}
	return 0
}

// callerOf returns the caller whose run waits because of err, ok = it is known.
func callerOf(err error) (user slotUser, ok bool) {
	lack, _ := errors.AsType[*NoCapacityError](err)
	if lack == nil {
		return slotUser{}, false
	}
	return lack.caller, lack.caller.isCaller
}

// RefusalError returns the error for a caller whose run can't begin because of
// err.
func (l *Limiter) RefusalError(err error) *runtime.Error {
	if lack, ok := errors.AsType[*NoCapacityError](err); ok && lack.Tenant != "" {
		if lack.IsOfCaller {
			return runtime.CallerLimitError(lack.Tenant, runtime.HoldingLiveRuns, lack.MostRuns)
		}
		return runtime.TenantLimitError(lack.Tenant, runtime.HoldingLiveRuns, lack.MostRuns)
	}
	if lack, ok := errors.AsType[*NoCapacityError](err); ok && lack.IsClosed {
		return runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
	}
	if need := missingBytes(err); need > 0 {
		return runtime.Errorf(runtime.ReasonTooManyRuns, "the live runs of the server hold as much as they may (--max-live-bytes), "+
			"and this one would hold %d bytes; nothing was stored: try again, or another server", need).WithLimit("max-live-bytes", l.bytes.limit, 0)
	}
	return runtime.Errorf(runtime.ReasonTooManyRuns, "the server drives %d runs, as many as it may (--max-live-runs); "+
		"nothing was stored: try again, or another server", l.maxRuns).
		WithLimit("max-live-runs", int64(l.maxRuns), 0)
}
