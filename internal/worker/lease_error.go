package worker

import "github.com/graphd-dev/graphd/internal/runtime"

// leaseLostError refuses a call under a lease that is not in force.
func leaseLostError(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTaskLeaseLost,
		"the lease is not valid any more: the task was given to another worker, cancelled or finished").With("taskId", task)
}
