package wire

import (
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// The functions of this file speak for a worker: [TaskResultFromProto] and [TaskAssignmentToProto]
// are their counterparts in the server.

// GraphSpecToProto converts the description of a graph.
func GraphSpecToProto(s *graph.Spec) *graphdv1.GraphSpec { return graphSpecToProto(s) }

// JournalFromProto converts the records that a task replays, and the drift policies of its graph.
func JournalFromProto(j *graphdv1.Journal) (out message.Journal, drift *graph.Spec) {
	for _, e := range j.GetEntries() {
		if m := e.GetMemo(); m != nil {
			out.Memos = append(out.Memos, checkpoint.Memo{
				Scope: e.GetScope(), Key: e.GetKey(), Index: int(e.GetIndex()), Value: payload.JSON(m.GetJson()),
			})
			continue
		}
		answer := e.GetAnswer()
		out.Answers = append(out.Answers, message.Answer{
			InterruptID: answer.GetInterruptId(), Scope: e.GetScope(), Key: e.GetKey(), Index: int(e.GetIndex()),
			Value: payload.JSON(answer.GetValue().GetJson()), Dismissed: answer.GetDismissed() != nil, Expired: answer.GetExpired() != nil,
			Reason: answer.GetDismissed().GetReason(), ShownDigest: answer.GetSeen(), HiddenDigest: answer.GetSecretSeen(),
		})
	}
	return out, &graph.Spec{Drift: string(driftFromProto(j.GetDrift())), DriftIgnore: j.GetDriftIgnore()}
}

// TaskResultToProto converts the result of a task. Secret parts are put back: the server takes them
// out again. ignored are the parts that may differ in all questions of the graph.
func TaskResultToProto(r *message.Result, ignored []string) (*graphdv1.TaskResult, error) {
	out := &graphdv1.TaskResult{}
	for i := range r.UsedAnswers {
		used, err := usedAnswerToProto(&r.UsedAnswers[i], ignored)
		if err != nil {
			return nil, err
		}
		out.Used = append(out.Used, used)
	}
	switch {
	case r.Failure != nil:
		out.Outcome = &graphdv1.TaskResult_Failed{Failed: taskFailedToProto(r.Failure)}
	case len(r.Asks) > 0:
		interrupted := &graphdv1.TaskInterrupted{}
		for i := range r.Asks {
			ask, err := askToProto(&r.Asks[i], ignored)
			if err != nil {
				return nil, err
			}
			interrupted.Asks = append(interrupted.Asks, ask)
		}
		out.Outcome = &graphdv1.TaskResult_Interrupted{Interrupted: interrupted}
	default:
		out.Outcome = &graphdv1.TaskResult_Completed{Completed: taskCompletedToProto(splitUpdate(r))}
	}
	return out, nil
}

// splitUpdate returns a result whose update names no channel twice: the protocol has writes for
// what follows the first value.
func splitUpdate(r *message.Result) *message.Result {
	fields, err := payload.Fields(r.Update)
	if err != nil || payload.KindOf(r.Update) != payload.ObjectKind {
		return r
	}
	known := make(map[string]bool, len(fields))
	var first []payload.Field
	var others []checkpoint.Write
	for _, f := range fields {
		if known[f.Key] {
			others = append(others, checkpoint.Write{Channel: f.Key, Value: f.Value})
			continue
		}
		known[f.Key] = true
		first = append(first, f)
	}
	if len(others) == 0 {
		return r
	}
	split := *r
	split.Update, split.Writes = payload.Object(first), slices.Concat(others, r.Writes)
	return &split
}

func taskFailedToProto(f *message.Failure) *graphdv1.TaskFailed {
	out := &graphdv1.TaskFailed{
		Type: f.Type, Message: f.Message, Stack: f.Stack, NonRetryable: f.Permanent, RetryDelay: DurationToProto(f.RetryAfter),
		Cause: graphdv1.TaskFailed_CAUSE_USER_CODE, Details: f.Details, BaseTypes: f.BaseTypes,
	}
	switch f.Reason {
	case runtime.FailedNonDeterministic:
		out.Cause = graphdv1.TaskFailed_CAUSE_NON_DETERMINISTIC
	case runtime.FailedOutputTooLarge:
		out.Cause = graphdv1.TaskFailed_CAUSE_TOO_LARGE
	case runtime.FailedInvalidUpdate, runtime.FailedLimit:
		out.Cause = graphdv1.TaskFailed_CAUSE_INVALID_UPDATE
	}
	return out
}

func usedAnswerToProto(u *message.UsedAnswer, ignored []string) (*graphdv1.UsedAnswer, error) {
	out := &graphdv1.UsedAnswer{
		Scope: u.Scope, Key: u.Key, Index: ClampUint32(u.Index), Seen: u.AskedDigest, SecretSeen: u.HiddenDigest,
	}
	if u.Asked == nil {
		return out, nil
	}
	var err error
	out.Asked, err = askToProto(u.Asked, ignored)
	return out, err
}

func askToProto(a *message.Ask, ignored []string) (*graphdv1.Ask, error) {
	value, err := a.Hidden.Value.Restore(a.Value)
	if err != nil {
		return nil, err
	}
	answer, err := a.Hidden.Default.Restore(a.Default)
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(a.DriftIgnore), func(part string) bool { return slices.Contains(ignored, part) })
	return &graphdv1.Ask{
		Scope: a.Scope, Key: a.Key, Index: ClampUint32(a.Index), Reason: a.Reason, Message: a.Message,
		Value: JSONToProto(value), ResponseSchema: JSONToProto(a.Schema), Ttl: DurationToProto(a.TTL),
		ExpiryAction: expiryToProto(a.Expiry), DefaultResponse: JSONToProto(answer), Assignees: a.Assignees,
		Drift: driftToProto(a.Drift), DriftIgnore: own, People: policyToProto(a.Policy), Priority: priorityToProto(a.Priority),
		Steps: stepsToProto(a.Steps), Undo: undoToProto(a.Undo), Secret: a.Secret,
	}, nil
}
