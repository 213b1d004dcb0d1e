package transport

import (
	"math"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// startIn converts what to run.
func startIn(b *border, spec *graphdv1.RunSpec, requestID string) runtime.StartRequest {
	b.must("run", spec != nil)
	req := runtime.StartRequest{
		Thread:       b.optionalID("run.thread_id", spec.GetThreadId()),
		CreateThread: spec.GetCreateThread() || spec.GetThreadId() == "",
		Graph:        b.name("run.graph", spec.GetGraph()),
		Version:      b.name("run.graph_version", spec.GetGraphVersion()),
		Run:          b.optionalID("run.run_id", spec.GetRunId()),
		Metadata:     b.labels("run.metadata", spec.GetMetadata()),
		Concurrency:  concurrencyIn(spec.GetConcurrency()),
		Open:         openPolicyIn(spec.GetOpenInterrupts()),
		RequestID:    b.optionalID("request_id", requestID),
	}
	r := &req.Request
	switch start := spec.GetStart().(type) {
	case *graphdv1.RunSpec_Input:
		r.Input = b.payload("run.input", start.Input)
		b.must("run.input", start.Input != nil)
	case *graphdv1.RunSpec_ReplayFrom:
		r.From, r.FromNamespace = checkpointIn(b, "run.replay_from", start.ReplayFrom)
		b.must("run.replay_from.checkpoint_id", r.From != "")
	}
	r.Context = b.payload("run.context", spec.GetContext())
	r.Update = b.payload("run.update", spec.GetUpdate())
	r.Goto = sendsIn(b, "run.goto_targets", spec.GetGotoTargets())
	r.InterruptBefore = b.names("run.interrupt_before", spec.GetInterruptBefore())
	r.InterruptAfter = b.names("run.interrupt_after", spec.GetInterruptAfter())
	r.StepLimit = b.limit("run.step_limit", spec.GetStepLimit())
	r.Timeout = b.positive("run.run_timeout", spec.GetRunTimeout())
	r.Expected = b.optionalID("run.expected_checkpoint_id", spec.GetExpectedCheckpointId())
	r.DiscardOpen = req.Open == runtime.DiscardOpen
	return req
}

// limit converts a number that must fit the domain's ints on every platform.
func (b *border) limit(field string, n uint32) int {
	if n > math.MaxInt32 {
		b.refuse(field, "%d is more than %d", n, math.MaxInt32)
		return 0
	}
	return int(n)
}

// resumeIn converts answers.
func resumeIn(b *border, spec *graphdv1.ResumeSpec, requestID string) runtime.ResumeRequest {
	b.must("resume", spec != nil)
	req := runtime.ResumeRequest{
		Thread:    b.id("resume.thread_id", spec.GetThreadId()),
		Coverage:  coverageIn(spec.GetCoverage()),
		Update:    b.payload("resume.update", spec.GetUpdate()),
		Goto:      sendsIn(b, "resume.goto_targets", spec.GetGotoTargets()),
		Metadata:  b.labels("resume.metadata", spec.GetMetadata()),
		Expected:  b.optionalID("resume.expected_checkpoint_id", spec.GetExpectedCheckpointId()),
		RequestID: b.optionalID("request_id", requestID),
	}
	if s := spec.GetSettings(); s != nil {
		req.Settings = &runtime.RunSettings{
			Context:         b.payload("resume.settings.context", s.GetContext()),
			InterruptBefore: b.names("resume.settings.interrupt_before", s.GetInterruptBefore()),
			InterruptAfter:  b.names("resume.settings.interrupt_after", s.GetInterruptAfter()),
			StepLimit:       b.limit("resume.settings.step_limit", s.GetStepLimit()),
		}
	}
	if len(spec.GetResponses()) > maxNames {
		b.refuse("resume.responses", "has %d entries; at most %d are allowed", len(spec.GetResponses()), maxNames)
		return req
	}
	seen := make(map[string]int, len(spec.GetResponses()))
	for i, r := range spec.GetResponses() {
		at := indexed("resume.responses", i)
		b.id(at+".interrupt_id", r.GetInterruptId())
		if first, twice := seen[r.GetInterruptId()]; twice && r.GetInterruptId() != "" {
			b.refuse(at+".interrupt_id", "%q is answered already by responses[%d]", r.GetInterruptId(), first)
		}
		seen[r.GetInterruptId()] = i
		req.Responses = append(req.Responses, responseIn(b, at, r))
	}
	if single := spec.GetSingle(); single != nil {
		if len(spec.GetResponses()) > 0 {
			b.refuse("resume.single", "is not allowed together with responses; give it an interrupt_id there")
		}
		if single.GetInterruptId() != "" {
			b.refuse("resume.single.interrupt_id", "must be empty; put an answer with an id into responses")
		}
		answer := responseIn(b, "resume.single", single)
		req.Single = &answer
	}
	return req
}

func responseIn(b *border, at string, r *graphdv1.InterruptResponse) runtime.Response {
	b.etag(at+".etag", r.GetEtag())
	out := runtime.Response{
		Interrupt: r.GetInterruptId(), Etag: r.GetEtag(), Note: b.text(at+".note", r.GetNote()),
	}
	switch outcome := r.GetOutcome().(type) {
	case *graphdv1.InterruptResponse_Value:
		b.must(at+".value", outcome.Value != nil)
		out.Value = b.payload(at+".value", outcome.Value)
	case *graphdv1.InterruptResponse_Dismissal:
		out.Dismissed = true
		reason := b.text(at+".dismissal.reason", outcome.Dismissal.GetReason())
		if reason != "" && out.Note != "" {
			b.refuse(at+".note", "is not allowed together with dismissal.reason; say it in one of them")
		}
		if reason != "" {
			out.Note = reason
		}
	default:
		b.refuse(at, "must have a value or a dismissal; for the answer null set value.json to \"null\"")
	}
	return out
}

// cancelIn converts a request to stop a run.
func cancelIn(b *border, req *graphdv1.CancelRunRequest) runtime.CancelRequest {
	return runtime.CancelRequest{
		Thread:   b.id("thread_id", req.GetThreadId()),
		Run:      b.optionalID("run_id", req.GetRunId()),
		Rollback: req.GetAction() == graphdv1.CancelRunRequest_ACTION_ROLLBACK,
		Grace:    b.duration("grace", req.GetGrace()),
		Reason:   b.text("reason", req.GetReason()),
	}
}
