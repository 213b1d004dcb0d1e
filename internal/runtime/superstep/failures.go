package superstep

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// updateFailure says why the writes of a superstep could not be applied.
func updateFailure(err error) *checkpoint.Failure {
	f := &checkpoint.Failure{Reason: runtime.FailedInvalidUpdate, Message: err.Error()}
	var target *pregel.TargetError
	var update *pregel.UpdateError
	var limit *graph.LimitError
	switch {
	case errors.As(err, &limit):
		f.Reason, f.Details = runtime.FailedLimit, limit.Details()
	case errors.As(err, &target):
		f.Reason = runtime.FailedUnknownTarget
		f.Details = map[string]string{"target": target.Target}
	case errors.As(err, &update):
		f.Details = map[string]string{"channel": update.Channel}
	}
	return f
}

// CancelFailure returns the failure of a cancelled run.
func CancelFailure(reason string) *checkpoint.Failure {
	f := &checkpoint.Failure{Reason: runtime.FailedCancelledByClient, Message: "the run was cancelled"}
	if reason != "" {
		f.Message += ": " + reason
	}
	return f
}

// InternalFailure returns the failure of a run or a task for which the engine panicked.
func InternalFailure() *checkpoint.Failure {
	return &checkpoint.Failure{Reason: runtime.ReasonInternal, Message: "the engine failed; the operator's log says why"}
}

func permanentFailure(reason, message string) *pregel.Failure {
	return &pregel.Failure{Failure: checkpoint.Failure{Reason: reason, Message: message}, Permanent: true}
}

// RefusalError translates an error of pregel about a bad call to a *runtime.Error:
// INVALID_FIELD, NODE_NOT_FOUND, or that of runtime.LimitRefusal. field is the bad part
// of the call. Other errors stay as they are.
func RefusalError(field string, err error) error {
	var target *pregel.TargetError
	var result *pregel.ResultError
	var update *pregel.UpdateError
	var limit *graph.LimitError
	switch {
	case errors.As(err, &limit):
		return runtime.LimitRefusal(field, limit)
	case errors.As(err, &target):
		return runtime.Errorf(runtime.ReasonNodeNotFound, "%v", err).With("node", target.Target)
	case errors.As(err, &result), errors.As(err, &update):
		return runtime.Errorf(runtime.ReasonInvalidField, "%v", err).WithViolation(field, "%v", err)
	default:
		return err
	}
}

// isVersionRefusal reports whether a failure comes from checkDueNodes. It fails the run:
// the node around the graph has not failed, so that no policy repeats or handles it.
func isVersionRefusal(reason string) bool { return reason == runtime.ReasonNodeNotFound }
