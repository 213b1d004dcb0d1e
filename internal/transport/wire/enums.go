package wire

import (
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Conversions between enums and the names of the domain. Unknown numbers were
// refused before.

func concurrencyFromProto(p graphdv1.ConcurrencyPolicy) runtime.Concurrency {
	switch p {
	case graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ENQUEUE:
		return runtime.EnqueueBusy
	case graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_CANCEL_ACTIVE:
		return runtime.CancelActive
	case graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_ROLLBACK_ACTIVE:
		return runtime.RollbackActive
	case graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_UNSPECIFIED,
		graphdv1.ConcurrencyPolicy_CONCURRENCY_POLICY_REJECT:
		return runtime.RejectBusy
	}
	return runtime.RejectBusy
}

func openPolicyFromProto(p graphdv1.OpenInterruptPolicy) runtime.OpenPolicy {
	switch p {
	case graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_DISCARD:
		return runtime.DiscardOpen
	case graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_ENQUEUE:
		return runtime.EnqueueOpen
	case graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_UNSPECIFIED,
		graphdv1.OpenInterruptPolicy_OPEN_INTERRUPT_POLICY_REJECT:
		return runtime.RejectOpen
	}
	return runtime.RejectOpen
}

func coverageFromProto(c graphdv1.ResumeCoverage) runtime.Coverage {
	switch c {
	case graphdv1.ResumeCoverage_RESUME_COVERAGE_ALL:
		return runtime.CoverAll
	case graphdv1.ResumeCoverage_RESUME_COVERAGE_COLLECT:
		return runtime.CoverCollect
	case graphdv1.ResumeCoverage_RESUME_COVERAGE_UNSPECIFIED,
		graphdv1.ResumeCoverage_RESUME_COVERAGE_PARTIAL:
		return runtime.CoverPartial
	}
	return runtime.CoverPartial
}

// onDisconnectCancel is RunRequest.OnDisconnect for DISCONNECT_POLICY_CANCEL.
const onDisconnectCancel = "cancel"

// OnDisconnectFromProto converts the policy for a run whose client leaves.
func OnDisconnectFromProto(p graphdv1.DisconnectPolicy) string {
	if p == graphdv1.DisconnectPolicy_DISCONNECT_POLICY_CANCEL {
		return onDisconnectCancel
	}
	return ""
}

func expiryFromProto(a graphdv1.ExpiryAction) checkpoint.ExpiryAction {
	switch a {
	case graphdv1.ExpiryAction_EXPIRY_ACTION_FAIL_NODE:
		return checkpoint.ExpiryFailNode
	case graphdv1.ExpiryAction_EXPIRY_ACTION_RESUME_DEFAULT:
		return checkpoint.ExpiryResumeDefault
	case graphdv1.ExpiryAction_EXPIRY_ACTION_CANCEL_RUN:
		return checkpoint.ExpiryCancelRun
	case graphdv1.ExpiryAction_EXPIRY_ACTION_UNSPECIFIED:
		return checkpoint.ExpiryNone
	}
	return checkpoint.ExpiryNone
}

func expiryToProto(a checkpoint.ExpiryAction) graphdv1.ExpiryAction {
	return graphdv1.ExpiryAction(findEnumNumber(graphdv1.ExpiryAction_value, "EXPIRY_ACTION_", string(a)))
}

func driftFromProto(d graphdv1.Drift) checkpoint.Drift {
	switch d {
	case graphdv1.Drift_DRIFT_FAIL:
		return checkpoint.DriftFail
	case graphdv1.Drift_DRIFT_ASK_AGAIN:
		return checkpoint.DriftAskAgain
	case graphdv1.Drift_DRIFT_ACCEPT:
		return checkpoint.DriftAccept
	case graphdv1.Drift_DRIFT_UNSPECIFIED:
		return checkpoint.DriftDefault
	}
	return checkpoint.DriftDefault
}

func driftToProto(d checkpoint.Drift) graphdv1.Drift {
	return graphdv1.Drift(findEnumNumber(graphdv1.Drift_value, "DRIFT_", string(d)))
}

func runStateToProto(s checkpoint.RunState) graphdv1.RunState {
	return graphdv1.RunState(findEnumNumber(graphdv1.RunState_value, "RUN_STATE_", string(s)))
}

func threadStateToProto(s checkpoint.ThreadState) graphdv1.ThreadState {
	return graphdv1.ThreadState(findEnumNumber(graphdv1.ThreadState_value, "THREAD_STATE_", string(s)))
}

func interruptStateToProto(s checkpoint.InterruptState) graphdv1.InterruptState {
	if s == checkpoint.InterruptRetractable {
		return graphdv1.InterruptState_INTERRUPT_STATE_ANSWERED // its effective_time says that it can be taken back
	}
	return graphdv1.InterruptState(findEnumNumber(graphdv1.InterruptState_value, "INTERRUPT_STATE_", string(s)))
}

func sourceToProto(s checkpoint.Source) graphdv1.CheckpointSource {
	return graphdv1.CheckpointSource(findEnumNumber(graphdv1.CheckpointSource_value, "CHECKPOINT_SOURCE_", string(s)))
}

func phaseToProto(p checkpoint.Phase) graphdv1.TaskChange_Phase {
	return graphdv1.TaskChange_Phase(findEnumNumber(graphdv1.TaskChange_Phase_value, "PHASE_", string(p)))
}

// findEnumNumber returns the number of a name of the domain. The contract spells
// the names alike; a test compares the two. An unknown name becomes UNSPECIFIED.
func findEnumNumber(values map[string]int32, prefix, word string) int32 {
	return values[prefix+strings.ToUpper(word)]
}
