package transport

import (
	"math"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// startRequestFromProto converts what to run.
func startRequestFromProto(b *validator, spec *graphdv1.RunSpec, requestID string) runtime.StartRequest {
	b.requireSet("run", spec != nil)
	req := runtime.StartRequest{
		Thread:       b.checkOptionalID("run.thread_id", spec.GetThreadId()),
		CreateThread: spec.GetCreateThread() || spec.GetThreadId() == "",
		Graph:        b.checkName("run.graph", spec.GetGraph()),
		Version:      b.checkName("run.graph_version", spec.GetGraphVersion()),
		Run:          b.checkOptionalID("run.run_id", spec.GetRunId()),
		Metadata:     b.checkLabels("run.metadata", spec.GetMetadata()),
		Concurrency:  concurrencyFromProto(spec.GetConcurrency()),
		Open:         openPolicyFromProto(spec.GetOpenInterrupts()),
		RequestID:    b.checkOptionalID("request_id", requestID),
	}
	r := &req.Request
	switch start := spec.GetStart().(type) {
	case *graphdv1.RunSpec_Input:
		r.Input = b.convertPayload("run.input", start.Input)
		b.requireSet("run.input", start.Input != nil)
	case *graphdv1.RunSpec_ReplayFrom:
		r.From, r.FromNamespace = checkpointRefFromProto(b, "run.replay_from", start.ReplayFrom)
		b.requireSet("run.replay_from.checkpoint_id", r.From != "")
	}
	r.Context = b.convertPayload("run.context", spec.GetContext())
	r.Update = b.convertPayload("run.update", spec.GetUpdate())
	r.Goto = sendsFromProto(b, "run.goto_targets", spec.GetGotoTargets())
	r.InterruptBefore = b.checkNames("run.interrupt_before", spec.GetInterruptBefore())
	r.InterruptAfter = b.checkNames("run.interrupt_after", spec.GetInterruptAfter())
	r.StepLimit = b.convertLimit("run.step_limit", spec.GetStepLimit())
	r.Timeout = b.convertPositiveDuration("run.run_timeout", spec.GetRunTimeout())
	r.Expected = b.checkOptionalID("run.expected_checkpoint_id", spec.GetExpectedCheckpointId())
	r.DiscardOpen = req.Open == runtime.DiscardOpen
	return req
}

// convertLimit converts a number that must fit the domain's ints on every platform.
func (b *validator) convertLimit(field string, n uint32) int {
	if n > math.MaxInt32 {
		b.addViolation(field, "%d is more than %d", n, math.MaxInt32)
		return 0
	}
	return int(n)
}

// resumeRequestFromProto converts answers.
func resumeRequestFromProto(b *validator, spec *graphdv1.ResumeSpec, requestID string) runtime.ResumeRequest {
	b.requireSet("resume", spec != nil)
	req := runtime.ResumeRequest{
		Thread:    b.checkID("resume.thread_id", spec.GetThreadId()),
		Coverage:  coverageFromProto(spec.GetCoverage()),
		Update:    b.convertPayload("resume.update", spec.GetUpdate()),
		Goto:      sendsFromProto(b, "resume.goto_targets", spec.GetGotoTargets()),
		Metadata:  b.checkLabels("resume.metadata", spec.GetMetadata()),
		Expected:  b.checkOptionalID("resume.expected_checkpoint_id", spec.GetExpectedCheckpointId()),
		RequestID: b.checkOptionalID("request_id", requestID),
	}
	if s := spec.GetSettings(); s != nil {
		req.Settings = &runtime.RunSettings{
			Context:         b.convertPayload("resume.settings.context", s.GetContext()),
			InterruptBefore: b.checkNames("resume.settings.interrupt_before", s.GetInterruptBefore()),
			InterruptAfter:  b.checkNames("resume.settings.interrupt_after", s.GetInterruptAfter()),
			StepLimit:       b.convertLimit("resume.settings.step_limit", s.GetStepLimit()),
		}
	}
	if len(spec.GetResponses()) > maxListEntries {
		b.addViolation("resume.responses", "has %d entries; at most %d are allowed", len(spec.GetResponses()), maxListEntries)
		return req
	}
	seen := make(map[string]int, len(spec.GetResponses()))
	for i, r := range spec.GetResponses() {
		at := elementPath("resume.responses", i)
		b.checkID(at+".interrupt_id", r.GetInterruptId())
		if first, twice := seen[r.GetInterruptId()]; twice && r.GetInterruptId() != "" {
			b.addViolation(at+".interrupt_id", "%q is answered already by responses[%d]", r.GetInterruptId(), first)
		}
		seen[r.GetInterruptId()] = i
		req.Responses = append(req.Responses, responseFromProto(b, at, r))
	}
	if single := spec.GetSingle(); single != nil {
		if len(spec.GetResponses()) > 0 {
			b.addViolation("resume.single", "is not allowed together with responses; give it an interrupt_id there")
		}
		if single.GetInterruptId() != "" {
			b.addViolation("resume.single.interrupt_id", "must be empty; put an answer with an id into responses")
		}
		answer := responseFromProto(b, "resume.single", single)
		req.Single = &answer
	}
	return req
}

func responseFromProto(b *validator, at string, r *graphdv1.InterruptResponse) runtime.Response {
	b.parseEtag(at+".etag", r.GetEtag())
	out := runtime.Response{
		Interrupt: r.GetInterruptId(), Etag: r.GetEtag(), Note: b.checkText(at+".note", r.GetNote()),
	}
	switch outcome := r.GetOutcome().(type) {
	case *graphdv1.InterruptResponse_Value:
		b.requireSet(at+".value", outcome.Value != nil)
		out.Value = b.convertPayload(at+".value", outcome.Value)
	case *graphdv1.InterruptResponse_Dismissal:
		out.Dismissed = true
		reason := b.checkText(at+".dismissal.reason", outcome.Dismissal.GetReason())
		if reason != "" && out.Note != "" {
			b.addViolation(at+".note", "is not allowed together with dismissal.reason; say it in one of them")
		}
		if reason != "" {
			out.Note = reason
		}
	default:
		b.addViolation(at, "must have a value or a dismissal; for the answer null set value.json to \"null\"")
	}
	return out
}

// cancelRequestFromProto converts a request to stop a run.
func cancelRequestFromProto(b *validator, req *graphdv1.CancelRunRequest) runtime.CancelRequest {
	return runtime.CancelRequest{
		Thread:   b.checkID("thread_id", req.GetThreadId()),
		Run:      b.checkOptionalID("run_id", req.GetRunId()),
		Rollback: req.GetAction() == graphdv1.CancelRunRequest_ACTION_ROLLBACK,
		Grace:    b.convertDuration("grace", req.GetGrace()),
		Reason:   b.checkText("reason", req.GetReason()),
	}
}
