package agentserver

import (
	"cmp"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Statuses of runs and threads.
const (
	statusPending     = "pending"
	statusRunning     = "running"
	statusSuccess     = "success"
	statusError       = "error"
	statusTimeout     = "timeout"
	statusInterrupted = "interrupted"
	statusIdle        = "idle"
	statusBusy        = "busy"
)

// runStatus returns the status of the last leg of a run. One that stopped at questions has succeeded:
// the answer is another run of this API.
func runStatus(state graphdv1.RunState) string {
	switch state {
	case graphdv1.RunState_RUN_STATE_QUEUED:
		return statusPending
	case graphdv1.RunState_RUN_STATE_RUNNING, graphdv1.RunState_RUN_STATE_CANCELLING:
		return statusRunning
	case graphdv1.RunState_RUN_STATE_SUCCEEDED, graphdv1.RunState_RUN_STATE_INTERRUPTED:
		return statusSuccess
	case graphdv1.RunState_RUN_STATE_TIMED_OUT:
		return statusTimeout
	case graphdv1.RunState_RUN_STATE_CANCELLED, graphdv1.RunState_RUN_STATE_SUPERSEDED:
		return statusInterrupted
	case graphdv1.RunState_RUN_STATE_FAILED, graphdv1.RunState_RUN_STATE_UNSPECIFIED:
	}
	return statusError
}

// isStopped reports whether a run does nothing more by itself.
func isStopped(state graphdv1.RunState) bool {
	status := runStatus(state)
	return status != statusPending && status != statusRunning
}

// threadStatus returns the status of a thread.
func threadStatus(state graphdv1.ThreadState) string {
	switch state {
	case graphdv1.ThreadState_THREAD_STATE_BUSY:
		return statusBusy
	case graphdv1.ThreadState_THREAD_STATE_INTERRUPTED:
		return statusInterrupted
	case graphdv1.ThreadState_THREAD_STATE_FAILED:
		return statusError
	case graphdv1.ThreadState_THREAD_STATE_IDLE, graphdv1.ThreadState_THREAD_STATE_UNSPECIFIED:
	}
	return statusIdle
}

// parseThreadStatus returns the state of graphd that a status stands for, as filters have it.
func parseThreadStatus(status string) (string, error) {
	states := map[string]string{statusIdle: "IDLE", statusBusy: "BUSY", statusInterrupted: "INTERRUPTED", statusError: "FAILED"}
	if state, ok := states[status]; ok {
		return state, nil
	}
	return "", invalidField("status", "is %.100q: want idle, busy, interrupted or error", status)
}

// runFailure is why a run failed.
type runFailure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// newRunFailure returns why a run ended in a state, nil unless that is a failure.
func newRunFailure(state graphdv1.RunState, failure *graphdv1.Failure) *runFailure {
	switch state { //nolint:exhaustive // the others are no failures
	case graphdv1.RunState_RUN_STATE_FAILED, graphdv1.RunState_RUN_STATE_TIMED_OUT:
		return &runFailure{Error: failureType(failure), Message: failure.GetMessage()}
	case graphdv1.RunState_RUN_STATE_CANCELLED:
		return &runFailure{Error: "UserInterrupt", Message: cmp.Or(failure.GetMessage(), "the run was cancelled")}
	}
	return nil
}

// failureType returns the name that LangGraph has for a failure: the type of the node's error.
func failureType(failure *graphdv1.Failure) string {
	names := map[string]string{
		"STEP_LIMIT_EXCEEDED": "GraphRecursionError", "INVALID_NODE_UPDATE": "InvalidUpdateError", "NODE_TIMEOUT": "NodeTimeoutError",
		"STEP_TIMEOUT": "TimeoutError", "RUN_TIMEOUT": "TimeoutError",
	}
	return cmp.Or(names[failure.GetReason()], failure.GetType(), failure.GetReason(), "Error")
}
