package lease

import "github.com/graphd-dev/graphd/internal/runtime"

// NewLostError refuses a call under a lease that is not in force.
func NewLostError(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTaskLeaseLost,
		"the lease is not valid any more: the task was given to another worker, cancelled or finished").With("taskId", task)
}
