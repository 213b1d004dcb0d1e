package permission

import (
	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// deniedError refuses what a caller sees and may not do. The rule says what is missing.
func deniedError(d access.Decision) *runtime.Error {
	return runtime.Errorf(runtime.ReasonAccessDenied, "access denied (%s)", d.Rule).With("rule", d.Rule)
}

// refuseThread returns the error for a refused call about an existing thread: a thread
// that the caller does not see looks as if it did not exist.
func refuseThread(d access.Decision, thread string) error {
	if d.CanSee {
		return deniedError(d)
	}
	return runtime.ThreadNotFoundError(thread)
}

// refuseGraph returns the error for a refused call about a graph. It depends on the name
// alone, not on whether there is such a graph.
func refuseGraph(d access.Decision, graph string) error {
	if d.CanSee || graph == "" {
		return deniedError(d)
	}
	return runtime.Errorf(runtime.ReasonGraphNotFound, "unknown graph %q", graph).With("graph", graph)
}

// threadExistsError refuses to make a thread whose id another one has, of which the
// caller may not know more.
func threadExistsError(thread string) error {
	return runtime.Errorf(runtime.ReasonThreadExists, "thread %q exists", thread).With("threadId", thread)
}
