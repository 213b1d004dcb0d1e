package permission

import (
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/access"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// deniedError refuses what a caller sees and may not do. The rule says what is missing.
func deniedError(d access.Decision) *runtime.Error {
	return runtime.Errorf(runtime.ReasonAccessDenied, "access denied: %s", describeRule(d.Rule)).With("rule", d.Rule)
}

// describeRule says what a rule wants of the caller.
func describeRule(rule string) string {
	kind, of, _ := strings.Cut(rule, ": ")
	switch kind {
	case "role":
		return "the caller has none of the roles that may call this here, want one of " + of
	case "right":
		return fmt.Sprintf("the request needs the right %s, want %s", of, describeSource(of))
	case "condition":
		return fmt.Sprintf("the condition of the binding in %s of the policy is not true now", of)
	case "tenant":
		return "the caller has no such tenant, want one of its own"
	case "method":
		return "no role has this method"
	}
	return rule
}

// describeSource says what gives a right.
func describeSource(right string) string {
	for _, row := range access.Rights() {
		if string(row.Right) != right || len(row.Roles) == 0 {
			continue
		}
		names := make([]string, len(row.Roles))
		for i, role := range row.Roles {
			names[i] = string(role)
		}
		return "one of the roles " + strings.Join(names, ", ")
	}
	return "a binding that names it in rights"
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
