package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/redact"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport/reason"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// The versions of the worker protocol that this server supports.
const (
	minProtocol = 1
	maxProtocol = 1
)

// FeatureDrift means that a process compares the questions of its code with the
// answered questions, and that the server sends the shown questions.
const FeatureDrift = "drift"

// MaxResultBytes bounds the result of one task, all values together.
const MaxResultBytes = 4 << 20

// Bounds of the messages of a worker.
const (
	maxCapabilities = 10_000
	maxHeldLeases   = 100_000
	maxAsks         = 1000
	maxUsedAnswers  = 10_000
	maxStackLength  = 16 << 10
	maxTokenLength  = 2 << 10
)

// HelloFromProto converts a hello, without its graphs.
func HelloFromProto(v *Validator, h *graphdv1.Hello) message.Hello {
	v.RequireSet("hello", h != nil)
	out := message.Hello{
		Worker:     v.CheckWorker("hello.worker_id", h.GetWorkerId()),
		BuildID:    v.CheckText("hello.manifest.build_id", h.GetManifest().GetBuildId()),
		Labels:     v.CheckLabels("hello.labels", h.GetLabels()),
		HeldLeases: LeaseTokensFromProto(v, "hello.held_leases", h.GetHeldLeases()),
		Credit:     CreditFromProto(v, "hello.credit", h.GetCredit()),

		ComparesAnswers: slices.Contains(h.GetManifest().GetFeatures(), FeatureDrift),
		KeptBytes:       int64(min(h.GetKeptBytes(), math.MaxInt64)),
	}
	out.Capabilities = CapabilitiesFromProto(v, "hello.manifest.nodes", h.GetManifest().GetNodes())
	return out
}

// CapabilitiesFromProto converts the list of nodes that a process serves.
func CapabilitiesFromProto(v *Validator, field string, nodes []*graphdv1.ServedNode) []message.Capability {
	if n := len(nodes); n > maxCapabilities {
		v.AddViolation(field, "has %d entries; at most %d are allowed", n, maxCapabilities)
		return nil
	}
	var out []message.Capability
	for i, n := range nodes {
		at := elementPath(field, i)
		v.RequireSet(at+".graph", n.GetGraph() != "")
		out = append(out, message.Capability{
			Graph: v.CheckGraphName(at+".graph", n.GetGraph()), Version: v.CheckName(at+".graph_version", n.GetGraphVersion()),
			Node: v.CheckName(at+".node", n.GetNode()),
		})
	}
	return out
}

// NegotiateProtocol returns the newest version that both sides support. The error has
// the reason PROTOCOL_MISMATCH when there is none.
func NegotiateProtocol(m *graphdv1.WorkerManifest) (uint32, error) {
	low, high := max(m.GetMinProtocol(), 1), max(m.GetMaxProtocol(), 1)
	if low > maxProtocol || high < minProtocol || low > high {
		return 0, runtime.Errorf(runtime.ReasonProtocolMismatch,
			"the worker speaks versions %d to %d of the protocol, this server %d to %d", low, high, minProtocol, maxProtocol).
			With("supported", fmt.Sprintf("%d-%d", minProtocol, maxProtocol))
	}
	return min(high, maxProtocol), nil
}

// CreditFromProto converts the number of tasks that a worker takes.
func CreditFromProto(v *Validator, field string, c *graphdv1.Credit) message.Credit {
	out := message.Credit{Total: v.ConvertLimit(field+".total_slots", c.GetTotalSlots()), Revision: c.GetRevision()}
	if n := len(c.GetPerNode()); n > maxCapabilities {
		v.AddViolation(field+".per_node", "has %d entries; at most %d are allowed", n, maxCapabilities)
		return out
	}
	if len(c.GetPerNode()) > 0 {
		out.PerNode = make(map[string]int, len(c.GetPerNode()))
	}
	for node, slots := range c.GetPerNode() {
		if len(node) > 2*MaxNameLength+1 {
			v.AddViolation(field+".per_node", "has a key of %d bytes; keys are graph/node, at most %d bytes", len(node), 2*MaxNameLength+1)
			return out
		}
		name, _, _ := strings.Cut(node, "/")
		qualified := v.CheckGraphName(field+".per_node", name) + node[len(name):]
		out.PerNode[qualified] = v.ConvertLimit(field+".per_node", slots)
	}
	return out
}

// LeaseTokenFromProto converts the token of a lease, which must be set.
func LeaseTokenFromProto(v *Validator, field string, token []byte) string {
	v.RequireSet(field, len(token) > 0)
	if len(token) > maxTokenLength {
		v.AddViolation(field, "has %d bytes; it is no lease of this server", len(token))
	}
	return string(token)
}

// LeaseTokensFromProto converts the tokens of leases.
func LeaseTokensFromProto(v *Validator, field string, list [][]byte) []string {
	if len(list) > maxHeldLeases {
		v.AddViolation(field, "has %d entries; at most %d are allowed", len(list), maxHeldLeases)
		return nil
	}
	var out []string
	for i, t := range list {
		out = append(out, LeaseTokenFromProto(v, elementPath(field, i), t))
	}
	return out
}

// EmissionsFromProto converts events. It drops and counts events that can't be
// shown, and keeps the others.
func EmissionsFromProto(limits payload.Limits, e *graphdv1.Emit) (events []runtime.Emission, dropped uint64) {
	dropped = e.GetDropped()
	for _, item := range e.GetItems() {
		v := &Validator{limits: limits}
		em := runtime.Emission{
			Kind: checkpoint.EventCustom, Name: v.CheckName("name", item.GetName()),
			Value: v.ConvertPayload("value", item.GetValue()), Durable: item.GetDurable(),
		}
		switch item.GetChannel() {
		case graphdv1.Channel_CHANNEL_MESSAGES:
			em.Kind = checkpoint.EventMessage
		case graphdv1.Channel_CHANNEL_CUSTOM:
		default:
			v.AddViolation("channel", "must be MESSAGES or CUSTOM")
		}
		if v.Err() != nil {
			dropped++
			continue
		}
		events = append(events, em)
	}
	return events, dropped
}

// TaskResultFromProto converts the result of a task. An unusable result becomes a
// failure of the task with the reason, because the worker can't send a better result.
// refused reports that the worker does not have the node.
func TaskResultFromProto(limits payload.Limits, r *graphdv1.TaskResult) (out message.Result, refused bool) {
	if size := proto.Size(r); size > MaxResultBytes {
		return UnusableResult(runtime.FailedOutputTooLarge, fmt.Sprintf(
			"the result has %d bytes; at most %d are allowed, so store large values elsewhere and pass on where they are",
			size, MaxResultBytes)), false
	}
	limits.MaxBytes = MaxResultBytes
	v := &Validator{limits: limits}
	switch outcome := r.GetOutcome().(type) {
	case *graphdv1.TaskResult_Completed:
		out = taskCompletedFromProto(v, outcome.Completed)
	case *graphdv1.TaskResult_Interrupted:
		out = taskInterruptedFromProto(v, outcome.Interrupted)
	case *graphdv1.TaskResult_Failed:
		out.Failure = taskFailedFromProto(outcome.Failed)
		return out, outcome.Failed.GetCause() == graphdv1.TaskFailed_CAUSE_NOT_SERVED
	case *graphdv1.TaskResult_Cancelled:
		out.Failure = &message.Failure{Failure: checkpoint.Failure{
			Reason: runtime.FailedNode, Type: "Cancelled",
			Message: "the worker stopped the task by itself: " + reason.ClipText(outcome.Cancelled.GetNote(), MaxTextLength),
		}}
		return out, false
	default:
		v.AddViolation("result", "has no outcome")
	}
	out.UsedAnswers = usedAnswersFromProto(v, r.GetUsed())
	if err := v.Err(); err != nil {
		failure, details := runtime.FailedInvalidUpdate, map[string]string(nil)
		if own, ok := errors.AsType[*runtime.Error](err); ok && own.Reason == runtime.ReasonPayloadTooLarge {
			failure = runtime.FailedOutputTooLarge
		} else if ok && own.Meta["limit"] != "" {
			failure, details = runtime.FailedLimit, own.Meta
		}
		out = UnusableResult(failure, "the worker's result can't be used: "+reason.ToClientError(err).Message)
		out.Failure.Details = details
		return out, false
	}
	return out, false
}

// UnusableResult returns the failure of a task with an unusable result.
func UnusableResult(failure, text string) message.Result {
	return message.Result{Failure: &message.Failure{Failure: checkpoint.Failure{
		Reason: failure, Type: "InvalidResult", Message: reason.ClipText(text, MaxTextLength),
	}, Permanent: true}}
}

func taskCompletedFromProto(v *Validator, c *graphdv1.TaskCompleted) message.Result {
	out := message.Result{
		Update: v.ConvertPayload("completed.update", c.GetUpdate()), ToParent: c.GetToParent(), Cached: c.GetCached(),
		Goto: sendsFromProto(v, "completed.goto_targets", c.GetGotoTargets()),
	}
	for i, w := range c.GetWrites() {
		at := elementPath("completed.writes", i)
		v.RequireSet(at+".channel", w.GetChannel() != "")
		v.RequireSet(at+".value", w.GetValue() != nil)
		out.Writes = append(out.Writes, checkpoint.Write{
			Channel: w.GetChannel(), Value: v.ConvertPayload(at+".value", w.GetValue()), Overwrite: w.GetOverwrite(),
		})
	}
	return out
}

func taskInterruptedFromProto(v *Validator, r *graphdv1.TaskInterrupted) message.Result {
	out := message.Result{WaitingInterrupts: v.CheckNames("interrupted.waiting_interrupt_ids", r.GetWaitingInterruptIds())}
	if n := len(r.GetAsks()); n > maxAsks {
		v.AddViolation("interrupted.asks", "has %d entries; at most %d are allowed", n, maxAsks)
		return out
	}
	if len(r.GetAsks())+len(out.WaitingInterrupts) == 0 {
		v.AddViolation("interrupted", "must ask something or wait for something")
	}
	for i, a := range r.GetAsks() {
		out.Asks = append(out.Asks, askFromProto(v, elementPath("interrupted.asks", i), a))
	}
	return out
}

func askFromProto(v *Validator, at string, a *graphdv1.Ask) message.Ask {
	out := message.Ask{
		Scope: v.CheckName(at+".scope", a.GetScope()), Key: v.CheckName(at+".key", a.GetKey()),
		Index: int(a.GetIndex()), Reason: v.CheckName(at+".reason", a.GetReason()),
		Message: v.CheckText(at+".message", a.GetMessage()), Value: v.ConvertPayload(at+".value", a.GetValue()),
		Schema: v.ConvertPayload(at+".response_schema", a.GetResponseSchema()), TTL: v.convertPositiveDuration(at+".ttl", a.GetTtl()),
		Expiry: expiryFromProto(a.GetExpiryAction()), Default: v.ConvertPayload(at+".default_response", a.GetDefaultResponse()),
		Assignees: v.CheckNames(at+".assignees", a.GetAssignees()), Policy: policyFromProto(v, at+".people", a.GetPeople()),
		Priority: priorityFromProto(v, at+".priority", a.GetPriority()), Steps: stepsFromProto(v, at+".steps", a.GetSteps()),
		Undo:  undoFromProto(v, at+".undo", a.GetUndo()),
		Drift: driftFromProto(a.GetDrift()), DriftIgnore: driftIgnoreFromProto(v, at+".drift_ignore", a.GetDriftIgnore()),
	}
	if out.Value == "" {
		out.Value = payload.Null
	}
	if out.Expiry == checkpoint.ExpiryResumeDefault && out.Default == "" {
		v.AddViolation(at+".default_response", "must be set: the question takes it when no answer comes in time")
	}
	hideSecrets(v, at+".secret", &out, a.GetSecret())
	return out
}

// hideSecrets takes the secret parts out of a question. Wrong pointers are violations.
func hideSecrets(v *Validator, at string, a *message.Ask, pointers []string) {
	problems := redact.CheckPointers(pointers)
	for _, problem := range problems {
		where := at
		if problem.Index >= 0 {
			where = elementPath(at, problem.Index)
		}
		v.AddViolation(where, "%s", problem.Text)
	}
	if len(problems) > 0 || v.Err() != nil {
		return
	}
	a.Secret = pointers
	if err := a.HideSecrets(); err != nil {
		v.AddViolation(at, "%v", err)
	}
}

// driftIgnoreFromProto checks which parts of an interrupt may differ.
func driftIgnoreFromProto(v *Validator, at string, parts []string) []string {
	if n := len(parts); n > graph.MaxDriftIgnore {
		v.AddViolation(at, "has %d entries; at most %d are allowed", n, graph.MaxDriftIgnore)
		return nil
	}
	for i, part := range v.CheckNames(at, parts) {
		if problem := graph.IgnoreProblem(part); problem != "" {
			v.AddViolation(elementPath(at, i), "%s", problem)
		}
	}
	return parts
}

// usedAnswersFromProto converts the answers that an attempt has used.
func usedAnswersFromProto(v *Validator, list []*graphdv1.UsedAnswer) []message.UsedAnswer {
	if n := len(list); n > maxUsedAnswers {
		v.AddViolation("used", "has %d entries; at most %d are allowed", n, maxUsedAnswers)
		return nil
	}
	var out []message.UsedAnswer
	for i, u := range list {
		at := elementPath("used", i)
		use := message.UsedAnswer{
			Scope: v.CheckName(at+".scope", u.GetScope()), Key: v.CheckName(at+".key", u.GetKey()), Index: int(u.GetIndex()),
			AskedDigest: v.CheckName(at+".seen", u.GetSeen()), HiddenDigest: v.CheckName(at+".secret_seen", u.GetSecretSeen()),
		}
		if u.GetAsked() != nil {
			asked := askFromProto(v, at+".asked", u.GetAsked())
			asked.Scope, asked.Key, asked.Index = use.Scope, use.Key, use.Index
			use.Asked = &asked
		}
		out = append(out, use)
	}
	return out
}

func taskFailedFromProto(f *graphdv1.TaskFailed) *message.Failure {
	out := &message.Failure{
		Failure: checkpoint.Failure{
			Reason: runtime.FailedNode, Type: reason.ClipText(f.GetType(), MaxNameLength), Message: reason.ClipText(f.GetMessage(), MaxTextLength),
			Stack: reason.ClipText(f.GetStack(), maxStackLength), Details: failureDetailsFromProto(f.GetDetails()),
		},
		Permanent: f.GetNonRetryable(), RetryAfter: max(f.GetRetryDelay().AsDuration(), 0), BaseTypes: baseTypesFromProto(f.GetBaseTypes()),
	}
	switch f.GetCause() {
	case graphdv1.TaskFailed_CAUSE_NON_DETERMINISTIC:
		out.Reason, out.Permanent = runtime.FailedNonDeterministic, true
	case graphdv1.TaskFailed_CAUSE_TOO_LARGE:
		out.Reason, out.Permanent = runtime.FailedOutputTooLarge, true
	case graphdv1.TaskFailed_CAUSE_INVALID_UPDATE:
		out.Reason, out.Permanent = runtime.FailedInvalidUpdate, true
	case graphdv1.TaskFailed_CAUSE_UNSPECIFIED, graphdv1.TaskFailed_CAUSE_USER_CODE,
		graphdv1.TaskFailed_CAUSE_NOT_SERVED:
	}
	return out
}

// baseTypesFromProto returns the base types of a failure, which a retry policy may
// name, within the bounds of labels.
func baseTypesFromProto(types []string) []string {
	var out []string
	for _, t := range types[:min(len(types), maxLabels)] {
		out = append(out, reason.ClipText(t, MaxNameLength))
	}
	return out
}

func failureDetailsFromProto(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, min(len(m), maxLabels))
	for k, v := range m {
		if len(out) == maxLabels {
			break
		}
		out[reason.ClipText(k, maxLabelKeyLength)] = reason.ClipText(v, maxLabelValueLength)
	}
	return out
}

// TooLargeTaskResult returns the failure of a task that does not fit into a
// message.
func TooLargeTaskResult(size, limit int) message.Result {
	return UnusableResult(runtime.FailedOutputTooLarge, fmt.Sprintf("what the task needs has %d bytes, more than the %d "+
		"of a message; name the keys that the node needs in its reads", size, limit))
}
