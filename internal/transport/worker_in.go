package transport

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// The versions of the worker protocol that this server speaks.
const (
	minProtocol = 1
	maxProtocol = 1
)

// maxResult bounds what one task may hand over, all values together.
const maxResult = 4 << 20

// Bounds of what a worker may say at once.
const (
	maxServed = 10_000
	maxHeld   = 100_000
	maxAsks   = 1000
	maxUsed   = 10_000
	maxStack  = 16 << 10
	maxToken  = 2 << 10
)

// helloIn converts a greeting. Graphs are not part of it.
func helloIn(b *border, h *graphdv1.Hello) worker.Hello {
	b.must("hello", h != nil)
	out := worker.Hello{
		Worker: b.id("hello.worker_id", h.GetWorkerId()),
		Build:  b.text("hello.manifest.build_id", h.GetManifest().GetBuildId()),
		Labels: b.labels("hello.labels", h.GetLabels()),
		Held:   tokensIn(b, "hello.held_leases", h.GetHeldLeases()),
		Credit: creditIn(b, "hello.credit", h.GetCredit()),

		Compares: slices.Contains(h.GetManifest().GetFeatures(), featureDrift),
	}
	out.Serves = servedIn(b, "hello.manifest.nodes", h.GetManifest().GetNodes())
	return out
}

// servedIn converts which nodes a process serves.
func servedIn(b *border, field string, nodes []*graphdv1.ServedNode) []worker.Served {
	if n := len(nodes); n > maxServed {
		b.refuse(field, "has %d entries; at most %d are allowed", n, maxServed)
		return nil
	}
	var out []worker.Served
	for i, n := range nodes {
		at := indexed(field, i)
		b.must(at+".graph", n.GetGraph() != "")
		out = append(out, worker.Served{
			Graph: b.name(at+".graph", n.GetGraph()), Version: b.name(at+".graph_version", n.GetGraphVersion()),
			Node: b.name(at+".node", n.GetNode()),
		})
	}
	return out
}

// protocolOf picks the newest version that both sides speak.
func protocolOf(m *graphdv1.WorkerManifest) (uint32, error) {
	low, high := max(m.GetMinProtocol(), 1), max(m.GetMaxProtocol(), 1)
	if low > maxProtocol || high < minProtocol || low > high {
		return 0, runtime.Errorf(runtime.ReasonProtocolMismatch,
			"the worker speaks versions %d to %d of the protocol, this server %d to %d", low, high, minProtocol, maxProtocol).
			With("supported", fmt.Sprintf("%d-%d", minProtocol, maxProtocol))
	}
	return min(high, maxProtocol), nil
}

func creditIn(b *border, field string, c *graphdv1.Credit) worker.Credit {
	out := worker.Credit{Total: b.limit(field+".total_slots", c.GetTotalSlots()), Revision: c.GetRevision()}
	if n := len(c.GetPerNode()); n > maxServed {
		b.refuse(field+".per_node", "has %d entries; at most %d are allowed", n, maxServed)
		return out
	}
	if len(c.GetPerNode()) > 0 {
		out.PerNode = make(map[string]int, len(c.GetPerNode()))
	}
	for node, slots := range c.GetPerNode() {
		if len(node) > 2*maxName+1 {
			b.refuse(field+".per_node", "has a key of %d bytes; keys are graph/node, at most %d bytes", len(node), 2*maxName+1)
			return out
		}
		out.PerNode[node] = b.limit(field+".per_node", slots)
	}
	return out
}

func tokenIn(b *border, field string, token []byte) string {
	b.must(field, len(token) > 0)
	if len(token) > maxToken {
		b.refuse(field, "has %d bytes; it is no lease of this server", len(token))
	}
	return string(token)
}

func tokensIn(b *border, field string, list [][]byte) []string {
	if len(list) > maxHeld {
		b.refuse(field, "has %d entries; at most %d are allowed", len(list), maxHeld)
		return nil
	}
	var out []string
	for i, t := range list {
		out = append(out, tokenIn(b, indexed(field, i), t))
	}
	return out
}

// emitIn converts events. One that is not fit to be shown is dropped and
// counted: it must not take the others with it.
func emitIn(limits payload.Limits, e *graphdv1.Emit) (events []runtime.Emission, dropped uint64) {
	dropped = e.GetDropped()
	for _, item := range e.GetItems() {
		b := &border{limits: limits}
		em := runtime.Emission{
			Kind: checkpoint.EventCustom, Name: b.name("name", item.GetName()),
			Value: b.payload("value", item.GetValue()), Durable: item.GetDurable(),
		}
		switch item.GetChannel() {
		case graphdv1.Channel_CHANNEL_MESSAGES:
			em.Kind = checkpoint.EventMessage
		case graphdv1.Channel_CHANNEL_CUSTOM:
		default:
			b.refuse("channel", "must be MESSAGES or CUSTOM")
		}
		if b.err() != nil {
			dropped++
			continue
		}
		events = append(events, em)
	}
	return events, dropped
}

// outcomeIn converts how a task ended. What can't be used becomes a failure of
// the task that says why: the worker has done its part and can't do better.
// refused says that the worker does not have the node.
func outcomeIn(limits payload.Limits, r *graphdv1.TaskResult) (out worker.Result, refused bool) {
	if size := proto.Size(r); size > maxResult {
		return unusable(runtime.FailedOutputTooLarge, fmt.Sprintf(
			"the result has %d bytes; at most %d are allowed, so store large values elsewhere and pass on where they are",
			size, maxResult)), false
	}
	limits.MaxBytes = maxResult
	b := &border{limits: limits}
	switch outcome := r.GetOutcome().(type) {
	case *graphdv1.TaskResult_Completed:
		out = completedIn(b, outcome.Completed)
	case *graphdv1.TaskResult_Interrupted:
		out = interruptedIn(b, outcome.Interrupted)
	case *graphdv1.TaskResult_Failed:
		out.Failure = failedIn(outcome.Failed)
		return out, outcome.Failed.GetCause() == graphdv1.TaskFailed_CAUSE_NOT_SERVED
	case *graphdv1.TaskResult_Cancelled:
		out.Failure = &worker.Failure{Failure: checkpoint.Failure{
			Reason: runtime.FailedNode, Type: "Cancelled",
			Message: "the worker stopped the task by itself: " + clip(outcome.Cancelled.GetNote(), maxText),
		}}
		return out, false
	default:
		b.refuse("result", "has no outcome")
	}
	out.Used = usedIn(b, r.GetUsed())
	if err := b.err(); err != nil {
		reason, details := runtime.FailedInvalidUpdate, map[string]string(nil)
		if own, ok := errors.AsType[*runtime.Error](err); ok && own.Reason == runtime.ReasonPayloadTooLarge {
			reason = runtime.FailedOutputTooLarge
		} else if ok && own.Meta["limit"] != "" {
			reason, details = runtime.FailedLimit, own.Meta
		}
		out = unusable(reason, "the worker's result can't be used: "+refusal(err).Message)
		out.Failure.Details = details
		return out, false
	}
	return out, false
}

func unusable(reason, message string) worker.Result {
	return worker.Result{Failure: &worker.Failure{Failure: checkpoint.Failure{
		Reason: reason, Type: "InvalidResult", Message: clip(message, maxText),
	}, Permanent: true}}
}

func completedIn(b *border, c *graphdv1.TaskCompleted) worker.Result {
	out := worker.Result{
		Update: b.payload("completed.update", c.GetUpdate()), Parent: c.GetToParent(), Cached: c.GetCached(),
		Goto: sendsIn(b, "completed.goto_targets", c.GetGotoTargets()),
	}
	for i, w := range c.GetWrites() {
		at := indexed("completed.writes", i)
		b.must(at+".channel", w.GetChannel() != "")
		b.must(at+".value", w.GetValue() != nil)
		out.Writes = append(out.Writes, checkpoint.Write{
			Channel: w.GetChannel(), Value: b.payload(at+".value", w.GetValue()), Overwrite: w.GetOverwrite(),
		})
	}
	return out
}

func interruptedIn(b *border, r *graphdv1.TaskInterrupted) worker.Result {
	out := worker.Result{Waiting: b.names("interrupted.waiting_interrupt_ids", r.GetWaitingInterruptIds())}
	if n := len(r.GetAsks()); n > maxAsks {
		b.refuse("interrupted.asks", "has %d entries; at most %d are allowed", n, maxAsks)
		return out
	}
	if len(r.GetAsks())+len(out.Waiting) == 0 {
		b.refuse("interrupted", "must ask something or wait for something")
	}
	for i, a := range r.GetAsks() {
		out.Asks = append(out.Asks, askOfTask(b, indexed("interrupted.asks", i), a))
	}
	return out
}

func askOfTask(b *border, at string, a *graphdv1.Ask) worker.Ask {
	out := worker.Ask{
		Scope: b.name(at+".scope", a.GetScope()), Key: b.name(at+".key", a.GetKey()),
		Index: int(a.GetIndex()), Reason: b.name(at+".reason", a.GetReason()),
		Message: b.text(at+".message", a.GetMessage()), Value: b.payload(at+".value", a.GetValue()),
		Schema: b.payload(at+".response_schema", a.GetResponseSchema()), TTL: b.positive(at+".ttl", a.GetTtl()),
		Expiry: expiryIn(a.GetExpiryAction()), Default: b.payload(at+".default_response", a.GetDefaultResponse()),
		Assignees: b.names(at+".assignees", a.GetAssignees()),
		Drift:     driftIn(a.GetDrift()), DriftIgnore: partsIn(b, at+".drift_ignore", a.GetDriftIgnore()),
	}
	if out.Value == "" {
		out.Value = payload.Null
	}
	if out.Expiry == checkpoint.ExpiryResumeDefault && out.Default == "" {
		b.refuse(at+".default_response", "must be set: the question takes it when nobody answers in time")
	}
	return out
}

// partsIn checks which parts of a question may differ.
func partsIn(b *border, at string, parts []string) []string {
	if n := len(parts); n > graph.MostDriftIgnore {
		b.refuse(at, "has %d entries; at most %d are allowed", n, graph.MostDriftIgnore)
		return nil
	}
	for i, part := range b.names(at, parts) {
		if problem := graph.NotIgnorable(part); problem != "" {
			b.refuse(indexed(at, i), "%s", problem)
		}
	}
	return parts
}

// usedIn converts which answers an attempt has used.
func usedIn(b *border, list []*graphdv1.UsedAnswer) []worker.Use {
	if n := len(list); n > maxUsed {
		b.refuse("used", "has %d entries; at most %d are allowed", n, maxUsed)
		return nil
	}
	var out []worker.Use
	for i, u := range list {
		at := indexed("used", i)
		use := worker.Use{
			Scope: b.name(at+".scope", u.GetScope()), Key: b.name(at+".key", u.GetKey()), Index: int(u.GetIndex()),
			Seen: b.name(at+".seen", u.GetSeen()),
		}
		if u.GetAsked() != nil {
			asked := askOfTask(b, at+".asked", u.GetAsked())
			asked.Scope, asked.Key, asked.Index = use.Scope, use.Key, use.Index
			use.Asked = &asked
		}
		out = append(out, use)
	}
	return out
}

func failedIn(f *graphdv1.TaskFailed) *worker.Failure {
	out := &worker.Failure{
		Failure: checkpoint.Failure{
			Reason: runtime.FailedNode, Type: clip(f.GetType(), maxName), Message: clip(f.GetMessage(), maxText),
			Stack: clip(f.GetStack(), maxStack), Details: detailsIn(f.GetDetails()),
		},
		Permanent: f.GetNonRetryable(), RetryAfter: max(f.GetRetryDelay().AsDuration(), 0), Bases: basesIn(f.GetBaseTypes()),
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

// basesIn keeps what a retry policy may name.
func basesIn(types []string) []string {
	var out []string
	for _, t := range types[:min(len(types), maxLabels)] {
		out = append(out, clip(t, maxName))
	}
	return out
}

func detailsIn(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, min(len(m), maxLabels))
	for k, v := range m {
		if len(out) == maxLabels {
			break
		}
		out[clip(k, maxLabelKey)] = clip(v, maxLabelValue)
	}
	return out
}
