package client

import (
	"fmt"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Outcome is a run that has stopped: it has ended, or waits for people.
type Outcome struct {
	Run *graphdv1.Run
	// Questions are open: the run goes on with their answers. A run that waits before or after a node
	// has none, and goes on with a Resume without answers. Those of Invoke and Resume have no etag.
	Questions []*graphdv1.Interrupt
}

// Waits reports whether the run waits for people.
func (o *Outcome) Waits() bool {
	return o.Run.GetState() == graphdv1.RunState_RUN_STATE_INTERRUPTED
}

// Err returns why the run has ended without a result, a [*RunError]. nil = it has succeeded, or
// waits.
func (o *Outcome) Err() error {
	if o.Waits() || o.Run.GetState() == graphdv1.RunState_RUN_STATE_SUCCEEDED {
		return nil
	}
	return &RunError{State: o.Run.GetState(), Failure: o.Run.GetFailure()}
}

// Output returns what the run of an outcome has returned. The error is that of [Outcome.Err], a
// [*WaitingError], or that of an output that is no T.
func Output[T any](o *Outcome) (T, error) {
	var none T
	if err := o.Err(); err != nil {
		return none, err
	}
	if o.Waits() {
		return none, &WaitingError{Questions: o.Questions}
	}
	return Decode[T](o.Run.GetOutput())
}

// RunError says that a run has failed, or was stopped. errors.Is finds the [Reason] of its failure.
type RunError struct {
	State graphdv1.RunState
	// Failure says why; nil = the run was stopped by a call.
	Failure *graphdv1.Failure
}

// Error has the state or the failure.
func (e *RunError) Error() string {
	f := e.Failure
	switch {
	case f == nil:
		return fmt.Sprintf("the run has ended without a result: %s", e.State)
	case f.GetNode() == "":
		return fmt.Sprintf("the run has failed: %s: %s", f.GetReason(), f.GetMessage())
	default:
		return fmt.Sprintf("the run has failed in node %q: %s: %s", f.GetNode(), f.GetReason(), f.GetMessage())
	}
}

// Is reports whether target is the reason of the failure.
func (e *RunError) Is(target error) bool {
	reason, ok := target.(Reason)
	return ok && reason != "" && reason == Reason(e.Failure.GetReason())
}

// WaitingError says that a run has no output yet: it waits for people.
type WaitingError struct{ Questions []*graphdv1.Interrupt }

// Error has the number of questions.
func (e *WaitingError) Error() string {
	if len(e.Questions) == 0 {
		return "the run has no output yet: it waits before or after a node, and goes on with a Resume without answers"
	}
	return fmt.Sprintf("the run has no output yet: it waits, with %d open questions", len(e.Questions))
}
