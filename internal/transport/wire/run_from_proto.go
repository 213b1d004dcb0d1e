package wire

import (
	"math"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// StartRequestFromProto converts a request to start a run.
func StartRequestFromProto(b *Validator, spec *graphdv1.RunSpec, requestID string) runtime.StartRequest {
	b.RequireSet("run", spec != nil)
	req := runtime.StartRequest{
		Thread:       b.CheckOptionalID("run.thread_id", spec.GetThreadId()),
		CreateThread: spec.GetCreateThread() || spec.GetThreadId() == "",
		Graph:        b.CheckGraphName("run.graph", spec.GetGraph()),
		Version:      b.CheckName("run.graph_version", spec.GetGraphVersion()),
		Run:          b.CheckOptionalID("run.run_id", spec.GetRunId()),
		Metadata:     b.CheckLabels("run.metadata", spec.GetMetadata()),
		Concurrency:  concurrencyFromProto(spec.GetConcurrency()),
		Open:         openPolicyFromProto(spec.GetOpenInterrupts()),
		RequestID:    b.CheckOptionalID("request_id", requestID),
	}
	r := &req.Request
	switch start := spec.GetStart().(type) {
	case *graphdv1.RunSpec_Input:
		r.Input = b.ConvertPayload("run.input", start.Input)
		b.RequireSet("run.input", start.Input != nil)
	case *graphdv1.RunSpec_ReplayFrom:
		r.From, r.FromNamespace = CheckpointRefFromProto(b, "run.replay_from", start.ReplayFrom)
		b.RequireSet("run.replay_from.checkpoint_id", r.From != "")
	}
	r.Context = b.ConvertPayload("run.context", spec.GetContext())
	r.Update = b.ConvertPayload("run.update", spec.GetUpdate())
	r.Goto = sendsFromProto(b, "run.goto_targets", spec.GetGotoTargets())
	r.InterruptBefore = b.CheckNames("run.interrupt_before", spec.GetInterruptBefore())
	r.InterruptAfter = b.CheckNames("run.interrupt_after", spec.GetInterruptAfter())
	r.StepLimit = b.ConvertLimit("run.step_limit", spec.GetStepLimit())
	r.Timeout = b.convertPositiveDuration("run.run_timeout", spec.GetRunTimeout())
	r.Expected = b.CheckOptionalID("run.expected_checkpoint_id", spec.GetExpectedCheckpointId())
	r.DiscardOpen = req.Open == runtime.DiscardOpen
	return req
}

// ConvertLimit converts a number that must fit the domain's ints on every platform.
func (b *Validator) ConvertLimit(field string, n uint32) int {
	if n > math.MaxInt32 {
		b.AddViolation(field, "%d is more than %d", n, math.MaxInt32)
		return 0
	}
	return int(n)
}

// ResumeRequestFromProto converts answers.
func ResumeRequestFromProto(b *Validator, spec *graphdv1.ResumeSpec, requestID string) runtime.ResumeRequest {
	b.RequireSet("resume", spec != nil)
	req := runtime.ResumeRequest{
		Thread:    b.CheckID("resume.thread_id", spec.GetThreadId()),
		Coverage:  coverageFromProto(spec.GetCoverage()),
		Update:    b.ConvertPayload("resume.update", spec.GetUpdate()),
		Goto:      sendsFromProto(b, "resume.goto_targets", spec.GetGotoTargets()),
		Metadata:  b.CheckLabels("resume.metadata", spec.GetMetadata()),
		Expected:  b.CheckOptionalID("resume.expected_checkpoint_id", spec.GetExpectedCheckpointId()),
		RequestID: b.CheckOptionalID("request_id", requestID),
	}
	if s := spec.GetSettings(); s != nil {
		req.Settings = &runtime.RunSettings{
			Context:         b.ConvertPayload("resume.settings.context", s.GetContext()),
			InterruptBefore: b.CheckNames("resume.settings.interrupt_before", s.GetInterruptBefore()),
			InterruptAfter:  b.CheckNames("resume.settings.interrupt_after", s.GetInterruptAfter()),
			StepLimit:       b.ConvertLimit("resume.settings.step_limit", s.GetStepLimit()),
		}
	}
	if len(spec.GetResponses()) > maxListEntries {
		b.AddViolation("resume.responses", "has %d entries; at most %d are allowed", len(spec.GetResponses()), maxListEntries)
		return req
	}
	seen := make(map[string]int, len(spec.GetResponses()))
	for i, r := range spec.GetResponses() {
		at := elementPath("resume.responses", i)
		b.CheckID(at+".interrupt_id", r.GetInterruptId())
		if first, twice := seen[r.GetInterruptId()]; twice && r.GetInterruptId() != "" {
			b.AddViolation(at+".interrupt_id", "%q is answered already by responses[%d]", r.GetInterruptId(), first)
		}
		seen[r.GetInterruptId()] = i
		req.Responses = append(req.Responses, responseFromProto(b, at, r))
	}
	if single := spec.GetSingle(); single != nil {
		if len(spec.GetResponses()) > 0 {
			b.AddViolation("resume.single", "is not allowed together with responses; give it an interrupt_id there")
		}
		if single.GetInterruptId() != "" {
			b.AddViolation("resume.single.interrupt_id", "must be empty; put an answer with an id into responses")
		}
		answer := responseFromProto(b, "resume.single", single)
		req.Single = &answer
	}
	return req
}

func responseFromProto(b *Validator, at string, r *graphdv1.InterruptResponse) runtime.Response {
	b.ParseEtag(at+".etag", r.GetEtag())
	out := runtime.Response{
		Interrupt: r.GetInterruptId(), Etag: r.GetEtag(), Note: b.CheckText(at+".note", r.GetNote()),
	}
	switch outcome := r.GetOutcome().(type) {
	case *graphdv1.InterruptResponse_Value:
		b.RequireSet(at+".value", outcome.Value != nil)
		out.Value = b.ConvertPayload(at+".value", outcome.Value)
	case *graphdv1.InterruptResponse_Dismissal:
		out.Dismissed = true
		reason := b.CheckText(at+".dismissal.reason", outcome.Dismissal.GetReason())
		if reason != "" && out.Note != "" {
			b.AddViolation(at+".note", "is not allowed together with dismissal.reason; say it in one of them")
		}
		if reason != "" {
			out.Note = reason
		}
	default:
		b.AddViolation(at, "must have a value or a dismissal; for the answer null set value.json to \"null\"")
	}
	return out
}

// CancelRequestFromProto converts a request to cancel a run. It adds violations to
// b; the result is valid only if b.Err returns nil. By is left empty.
func CancelRequestFromProto(b *Validator, req *graphdv1.CancelRunRequest) runtime.CancelRequest {
	return runtime.CancelRequest{
		Thread:   b.CheckID("thread_id", req.GetThreadId()),
		Run:      b.CheckOptionalID("run_id", req.GetRunId()),
		Rollback: req.GetAction() == graphdv1.CancelRunRequest_ACTION_ROLLBACK,
		Grace:    b.ConvertDuration("grace", req.GetGrace()),
		Reason:   b.CheckText("reason", req.GetReason()),
	}
}
