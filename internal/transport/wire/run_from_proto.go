package wire

import (
	"cmp"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// StartRequestFromProto converts a request to start a run.
func StartRequestFromProto(v *Validator, spec *graphdv1.RunSpec, requestID string) runtime.StartRequest {
	v.RequireSet("run", spec != nil)
	req := runtime.StartRequest{
		Tenant:         v.Tenant(),
		Thread:         v.CheckOptionalThread("run.thread_id", spec.GetThreadId()),
		CreateThread:   spec.GetCreateThread() || spec.GetThreadId() == "",
		Graph:          v.CheckGraphName("run.graph", spec.GetGraph()),
		Version:        v.CheckName("run.graph_version", spec.GetGraphVersion()),
		Run:            v.CheckOptionalID("run.run_id", spec.GetRunId()),
		Metadata:       v.CheckLabels("run.metadata", spec.GetMetadata()),
		ThreadMetadata: v.CheckLabels("run.thread_metadata", spec.GetThreadMetadata()),
		Concurrency:    concurrencyFromProto(spec.GetConcurrency()),
		Open:           openPolicyFromProto(spec.GetOpenInterrupts()),
		RequestID:      v.CheckOptionalID("request_id", requestID),
		Webhook:        spec.GetWebhook(),
	}
	v.RequireSet("request_id", req.Webhook == "" || requestID != "")
	r := &req.Request
	switch start := spec.GetStart().(type) {
	case *graphdv1.RunSpec_Input:
		r.Input = v.ConvertPayload("run.input", start.Input)
		v.RequireSet("run.input", start.Input != nil)
	case *graphdv1.RunSpec_ReplayFrom:
		r.From, r.FromNamespace = CheckpointRefFromProto(v, "run.replay_from", start.ReplayFrom)
		v.RequireSet("run.replay_from.checkpoint_id", r.From != "")
	}
	if at := spec.GetInputAt(); at != nil {
		checkInputAt(v, spec)
		r.From, _ = CheckpointRefFromProto(v, "run.input_at", at)
	}
	r.Context = v.ConvertPayload("run.context", spec.GetContext())
	r.Update = v.ConvertPayload("run.update", spec.GetUpdate())
	r.Goto = sendsFromProto(v, "run.goto_targets", spec.GetGotoTargets())
	r.InterruptBefore = v.CheckNames("run.interrupt_before", spec.GetInterruptBefore())
	r.InterruptAfter = v.CheckNames("run.interrupt_after", spec.GetInterruptAfter())
	r.StepLimit = v.ConvertLimit("run.step_limit", spec.GetStepLimit())
	r.Timeout = v.convertPositiveDuration("run.run_timeout", spec.GetRunTimeout())
	r.Delay = v.convertDelay("run.begin_after", spec.GetBeginAfter())
	if r.Delay > 0 && (req.Concurrency == runtime.CancelActive || req.Concurrency == runtime.RollbackActive) {
		v.AddViolation("run.concurrency", "can't stop a run for one that begins later, which waits for its turn: want ENQUEUE, or leave it unset")
	}
	r.Expected = v.CheckOptionalID("run.expected_checkpoint_id", spec.GetExpectedCheckpointId())
	r.DiscardOpen = req.Open == runtime.DiscardOpen
	return req
}

// longestDelay is how long after its acceptance a run begins at most.
const longestDelay = 366 * 24 * time.Hour

func (v *Validator) convertDelay(field string, d *durationpb.Duration) time.Duration {
	delay := v.convertPositiveDuration(field, d)
	if delay > longestDelay {
		v.AddViolation(field, "is %s: want at most %s", delay, longestDelay)
	}
	return delay
}

// checkInputAt refuses an earlier checkpoint at which no input can be taken.
func checkInputAt(v *Validator, spec *graphdv1.RunSpec) {
	at := spec.GetInputAt()
	v.RequireSet("run.input_at.checkpoint_id", at.GetCheckpointId() != "")
	if len(at.GetNamespace()) > 0 {
		v.AddViolation("run.input_at.namespace", "must be empty: the graph takes its input, not one inside of it")
	}
	if spec.GetInput() == nil {
		v.AddViolation("run.input_at", "goes with run.input alone; to run a checkpoint again, set run.replay_from")
	}
}

// ConvertLimit converts a number that must fit the domain's ints on every platform.
func (v *Validator) ConvertLimit(field string, n uint32) int {
	if n > math.MaxInt32 {
		v.AddViolation(field, "%d is more than %d", n, math.MaxInt32)
		return 0
	}
	return int(n)
}

// ResumeRequestFromProto converts answers.
func ResumeRequestFromProto(v *Validator, spec *graphdv1.ResumeSpec, requestID string) runtime.ResumeRequest {
	v.RequireSet("resume", spec != nil)
	req := runtime.ResumeRequest{
		Thread:    v.CheckThread("resume.thread_id", spec.GetThreadId()),
		Coverage:  coverageFromProto(spec.GetCoverage()),
		Update:    v.ConvertPayload("resume.update", spec.GetUpdate()),
		Goto:      sendsFromProto(v, "resume.goto_targets", spec.GetGotoTargets()),
		Metadata:  v.CheckLabels("resume.metadata", spec.GetMetadata()),
		Expected:  v.CheckOptionalID("resume.expected_checkpoint_id", spec.GetExpectedCheckpointId()),
		RequestID: v.CheckOptionalID("request_id", requestID),
		Webhook:   spec.GetWebhook(),
	}
	v.RequireSet("request_id", req.Webhook == "" || requestID != "")
	if s := spec.GetSettings(); s != nil {
		req.Settings = &runtime.RunSettings{
			Context:         v.ConvertPayload("resume.settings.context", s.GetContext()),
			InterruptBefore: v.CheckNames("resume.settings.interrupt_before", s.GetInterruptBefore()),
			InterruptAfter:  v.CheckNames("resume.settings.interrupt_after", s.GetInterruptAfter()),
			StepLimit:       v.ConvertLimit("resume.settings.step_limit", s.GetStepLimit()),
		}
	}
	req.Responses = responsesFromProto(v, "resume.responses", spec.GetResponses())
	if single := spec.GetSingle(); single != nil {
		if len(spec.GetResponses()) > 0 {
			v.AddViolation("resume.single", "is not allowed together with responses; give it an interrupt_id there")
		}
		if single.GetInterruptId() != "" {
			v.AddViolation("resume.single.interrupt_id", "must be empty; put an answer with an id into responses")
		}
		answer := responseFromProto(v, "resume.single.", single)
		req.Single = &answer
	}
	return req
}

// CheckedResponsesFromProto converts answers that are to be checked.
func CheckedResponsesFromProto(v *Validator, req *graphdv1.CheckResponsesRequest) runtime.ResumeRequest {
	v.RequireSet("responses", len(req.GetResponses()) > 0)
	return runtime.ResumeRequest{
		Thread: v.CheckThread("thread_id", req.GetThreadId()), Responses: responsesFromProto(v, "responses", req.GetResponses()),
	}
}

// CheckedResponsesToProto converts what answers would do.
func CheckedResponsesToProto(list []runtime.CheckedResponse) *graphdv1.CheckResponsesResponse {
	resp := &graphdv1.CheckResponsesResponse{}
	for _, c := range list {
		resp.Outcomes = append(resp.Outcomes, &graphdv1.CheckResponsesResponse_Outcome{
			InterruptId: c.Interrupt, Decides: c.Decides, Repeated: c.IsRepeated, MissingVotes: ClampUint32(c.MissingVotes), Undo: DurationToProto(c.Undo),
		})
	}
	return resp
}

func responsesFromProto(v *Validator, field string, list []*graphdv1.InterruptResponse) []runtime.Response {
	if len(list) > maxListEntries {
		v.AddViolation(field, "has %d entries; at most %d are allowed", len(list), maxListEntries)
		return nil
	}
	var out []runtime.Response
	seen := make(map[string]int, len(list))
	for i, r := range list {
		at := elementPath(field, i)
		v.CheckID(at+".interrupt_id", r.GetInterruptId())
		if first, twice := seen[r.GetInterruptId()]; twice && r.GetInterruptId() != "" {
			v.AddViolation(at+".interrupt_id", "%q is answered already by responses[%d]", r.GetInterruptId(), first)
		}
		seen[r.GetInterruptId()] = i
		out = append(out, responseFromProto(v, at+".", r))
	}
	return out
}

// responseFromProto converts an answer. prefix is what stands before the names of its fields,
// like "resume.single.".
func responseFromProto(v *Validator, prefix string, r *graphdv1.InterruptResponse) runtime.Response {
	v.ParseEtag(prefix+"etag", r.GetEtag())
	out := runtime.Response{
		Interrupt: r.GetInterruptId(), Etag: r.GetEtag(), Seen: v.CheckName(prefix+"seen", r.GetSeen()), Note: v.CheckText(prefix+"note", r.GetNote()),
	}
	switch outcome := r.GetOutcome().(type) {
	case *graphdv1.InterruptResponse_Value:
		v.RequireSet(prefix+"value", outcome.Value != nil)
		out.Value = v.ConvertPayload(prefix+"value", outcome.Value)
	case *graphdv1.InterruptResponse_Dismissal:
		out.Dismissed = true
		reason := v.CheckText(prefix+"dismissal.reason", outcome.Dismissal.GetReason())
		if reason != "" && out.Note != "" {
			v.AddViolation(prefix+"note", "is not allowed together with dismissal.reason; say it in one of them")
		}
		if reason != "" {
			out.Note = reason
		}
	default:
		v.AddViolation(cmp.Or(strings.TrimSuffix(prefix, "."), "value"), "must have a value or a dismissal; for the answer null set value.json to \"null\"")
	}
	return out
}

// CancelRequestFromProto converts a request to cancel a run. It adds violations to
// b; the result is valid only if b.Err returns nil. By is left empty.
func CancelRequestFromProto(v *Validator, req *graphdv1.CancelRunRequest) runtime.CancelRequest {
	return runtime.CancelRequest{
		Thread:   v.CheckThread("thread_id", req.GetThreadId()),
		Run:      v.CheckOptionalID("run_id", req.GetRunId()),
		Rollback: req.GetAction() == graphdv1.CancelRunRequest_ACTION_ROLLBACK,
		Grace:    cancelGrace(v, req),
		Reason:   v.CheckText("reason", req.GetReason()),
	}
}

func cancelGrace(v *Validator, req *graphdv1.CancelRunRequest) time.Duration {
	var grace time.Duration
	switch req.GetAction() {
	case graphdv1.CancelRunRequest_ACTION_DRAIN:
		grace = checkpoint.DrainGrace
	case graphdv1.CancelRunRequest_ACTION_PAUSE:
		grace = checkpoint.PauseGrace
	default:
		return min(v.ConvertDuration("grace", req.GetGrace()), checkpoint.DrainGrace-1)
	}
	if req.GetGrace() != nil {
		v.AddViolation("grace", "is not allowed together with %s, which has its own", req.GetAction())
	}
	return grace
}
