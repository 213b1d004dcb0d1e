package lease

import "github.com/graphd-dev/graphd/internal/runtime"

// NewLostError refuses a call under a lease that is not in force.
func NewLostError(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTaskLeaseLost,
		"the lease is not valid any more: the task was given to another worker, cancelled or finished").With("taskId", task)
}

// NewNotTakenUpError asks for a repetition of a call, here or at the server that has the
// run.
func NewNotTakenUpError(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonWaitTimeout, "the run of task %q is not taken up here yet; repeat the call", task)
}
