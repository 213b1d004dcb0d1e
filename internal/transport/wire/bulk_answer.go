package wire

import (
	"strconv"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// MaxAnswerTargets is the number of questions that one call answers.
const MaxAnswerTargets = 10_000

// AnswerTarget is a question that a bulk answer answers.
type AnswerTarget struct {
	runtime.Question

	Seen string // digest of what was shown, "" = any
}

// BulkAnswer is one answer to many questions.
type BulkAnswer struct {
	Targets       []AnswerTarget // empty = those of a filter
	ExpectedCount int            // 0 = any
	AskedBefore   time.Time      // of those of a filter
	Response      runtime.Response
	RequestID     string
	Digest        string // of the answer, for RequestID
}

// BulkAnswerFromProto converts a bulk answer. It adds violations to v; the result is valid
// only if v.Err returns nil. The filter is left to the caller.
func BulkAnswerFromProto(v *Validator, req *graphdv1.AnswerInterruptsRequest) BulkAnswer {
	b := BulkAnswer{
		ExpectedCount: v.ConvertLimit("expected_count", req.GetExpectedCount()), RequestID: v.CheckName("request_id", req.GetRequestId()),
		Response: bulkResponseFromProto(v, req),
	}
	switch which := req.GetWhich().(type) {
	case *graphdv1.AnswerInterruptsRequest_Targets_:
		b.Targets = answerTargetsFromProto(v, which.Targets.GetTargets())
	case *graphdv1.AnswerInterruptsRequest_Filter:
		v.RequireSet("expected_count", b.ExpectedCount > 0)
		v.RequireSet("asked_before", req.GetAskedBefore() != nil)
		b.AskedBefore = v.convertTime("asked_before", req.GetAskedBefore())
		if b.RequestID != "" {
			v.AddViolation("request_id", "is not allowed together with filter, which may select others when the call is repeated; name the targets")
		}
	default:
		v.AddViolation("targets", "is missing; name the questions, or select them with filter")
	}
	effect := &graphdv1.AnswerInterruptsRequest{Outcome: req.GetOutcome(), Note: req.GetNote()}
	digest, err := DigestIfRepeatable(b.RequestID, effect)
	if err != nil {
		v.AddViolation("value", "can't be read: %v", err)
	}
	b.Digest = digest
	return b
}

func bulkResponseFromProto(v *Validator, req *graphdv1.AnswerInterruptsRequest) runtime.Response {
	single := &graphdv1.InterruptResponse{Note: req.GetNote()}
	switch outcome := req.GetOutcome().(type) {
	case *graphdv1.AnswerInterruptsRequest_Value:
		single.Outcome = &graphdv1.InterruptResponse_Value{Value: outcome.Value}
	case *graphdv1.AnswerInterruptsRequest_Dismissal:
		single.Outcome = &graphdv1.InterruptResponse_Dismissal{Dismissal: outcome.Dismissal}
	}
	return responseFromProto(v, "", single)
}

func answerTargetsFromProto(v *Validator, list []*graphdv1.AnswerInterruptsRequest_Target) []AnswerTarget {
	if len(list) == 0 || len(list) > MaxAnswerTargets {
		v.AddViolation("targets", "has %d questions; want 1 to %d", len(list), MaxAnswerTargets)
		return nil
	}
	targets, first := make([]AnswerTarget, len(list)), make(map[runtime.Question]int, len(list))
	for i, target := range list {
		at := "targets.targets[" + strconv.Itoa(i) + "]."
		targets[i] = AnswerTarget{Question: questionFromProto(v, at, target), Seen: v.CheckName(at+"seen", target.GetSeen())}
		if j, twice := first[targets[i].Question]; twice {
			v.AddViolation(at+"interrupt_id", "is that of targets[%d]; name each question once", j)
		}
		first[targets[i].Question] = i
	}
	return targets
}
