package graph

import (
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Digest is the version of a Spec that names none: "sha-" and 12 hex digits of
// its content. Name and content count, the order of channels and nodes does
// not, the spelling of expressions does.
func Digest(spec *Spec) string {
	unnamed := *spec
	unnamed.Version = ""
	return "sha-" + payload.Canonical(payload.JSON(EncodeSpec(&unnamed)))[:12]
}

// EncodeSpec writes a Spec as JSON with the field names of a graph file, so
// that graphfile reads it back. Fields that are not set are left out.
func EncodeSpec(s *Spec) string {
	o := object{}
	o.text("graph", s.Name)
	o.text("version", s.Version)
	o.text("description", s.Description)
	o.stringMap("metadata", s.Metadata)
	o.raw("channels", encodeChannels(s.Channels))
	o.list("input", s.Input)
	o.list("output", s.Output)
	o.flag("strict", s.Strict)
	o.raw("input_schema", s.InputSchema)
	o.raw("output_schema", s.OutputSchema)
	o.raw("context_schema", s.ContextSchema)
	o.raw("nodes", encodeNodes(s.Nodes))
	o.raw("edges", encodeEdges(s.Edges))
	o.raw("conditional_edges", encodeBranches(s.Branches))
	o.list("interrupt_before", s.InterruptBefore)
	o.list("interrupt_after", s.InterruptAfter)
	o.number("step_limit", s.StepLimit)
	o.duration("step_timeout", s.StepTimeout)
	defaults := object{}
	defaults.policy(&s.Defaults)
	o.raw("defaults", defaults.orNothing())
	o.text("drift", s.Drift)
	o.list("drift_ignore", s.DriftIgnore)
	return string(o.json())
}

func encodeChannels(list []ChannelSpec) payload.JSON {
	all := object{}
	for i := range list {
		o := object{}
		o.text("reducer", list[i].Reducer)
		o.text("function", list[i].Function)
		o.raw("default", list[i].Default)
		all.raw(list[i].Name, o.json())
	}
	return all.json()
}

func encodeNodes(list []NodeSpec) payload.JSON {
	all := object{}
	for i := range list {
		n := &list[i]
		o := object{}
		o.text("description", n.Description)
		o.stringMap("metadata", n.Metadata)
		o.list("reads", n.Reads)
		o.flag("defer", n.Defer)
		if n.Destinations != nil {
			o.raw("destinations", encodeList(n.Destinations))
		}
		o.policy(&n.Policy)
		o.kinds(n)
		all.raw(n.Name, o.json())
	}
	return all.json()
}

func (o *object) kinds(n *NodeSpec) {
	if s := n.Function; s != nil {
		k := object{}
		k.text("name", s.Name)
		o.raw("function", k.json())
	}
	if s := n.Expr; s != nil {
		k := object{}
		k.assignments("update", s.Update)
		k.text("goto", s.Goto)
		o.raw("expr", k.json())
	}
	if s := n.Ask; s != nil {
		o.raw("ask", encodeAsk(s))
	}
	if s := n.Graph; s != nil {
		k := object{}
		k.text("name", s.Name)
		k.text("version", s.Version)
		k.text("persistence", s.Persistence)
		o.raw("graph", k.json())
	}
	if s := n.Remote; s != nil {
		k := object{}
		k.text("endpoint", s.Endpoint)
		k.flag("tls", s.TLS)
		o.raw("remote", k.json())
	}
}

func encodeAsk(s *AskSpec) payload.JSON {
	o := object{}
	o.text("when", s.When)
	o.text("value", s.Value)
	o.text("message", s.Message)
	o.text("key", s.Key)
	o.text("reason", s.Reason)
	o.raw("schema", s.Schema)
	o.assignments("update", s.Update)
	o.assignments("otherwise", s.Otherwise)
	o.text("goto", s.Goto)
	o.list("assignees", s.Assignees)
	o.duration("ttl", s.TTL)
	o.text("expiry", s.Expiry)
	o.raw("default", s.Default)
	o.text("drift", s.Drift)
	o.list("drift_ignore", s.DriftIgnore)
	return o.json()
}

func encodeEdges(list []EdgeSpec) payload.JSON {
	items := make([]payload.JSON, len(list))
	for i := range list {
		o := object{}
		if len(list[i].From) == 1 {
			o.text("from", list[i].From[0])
		} else {
			o.raw("from", encodeList(list[i].From))
		}
		o.text("to", list[i].To)
		items[i] = o.json()
	}
	return payload.Array(items)
}

func encodeBranches(list []BranchSpec) payload.JSON {
	if len(list) == 0 {
		return ""
	}
	items := make([]payload.JSON, len(list))
	for i := range list {
		s := &list[i]
		o := object{}
		o.text("from", s.From)
		o.text("name", s.Name)
		if len(s.Cases) > 0 {
			o.raw("cases", encodeCases(s.Cases))
		}
		o.text("expr", s.Expr)
		o.text("router", s.Router)
		o.flag("in_worker", s.InWorker)
		o.stringMap("paths", s.Paths)
		if s.Then != nil {
			o.raw("then", encodeList(s.Then))
		}
		items[i] = o.json()
	}
	return payload.Array(items)
}

func encodeCases(list []CaseSpec) payload.JSON {
	items := make([]payload.JSON, len(list))
	for i := range list {
		o := object{}
		o.text("when", list[i].When)
		if len(list[i].To) == 1 {
			o.text("to", list[i].To[0])
		} else {
			o.raw("to", encodeList(list[i].To))
		}
		items[i] = o.json()
	}
	return payload.Array(items)
}

// object collects the fields that are set.
type object struct{ fields []payload.Field }

func (o *object) json() payload.JSON { return payload.Object(o.fields) }

func (o *object) orNothing() payload.JSON {
	if len(o.fields) == 0 {
		return ""
	}
	return o.json()
}

func (o *object) raw(key string, value payload.JSON) {
	if value != "" {
		o.fields = append(o.fields, payload.Field{Key: key, Value: value})
	}
}

func (o *object) text(key, value string) {
	if value != "" {
		o.raw(key, payload.Quote(value))
	}
}

func (o *object) flag(key string, value bool) {
	if value {
		o.raw(key, "true")
	}
}

func (o *object) number(key string, value int) {
	if value != 0 {
		o.raw(key, payload.JSON(strconv.Itoa(value)))
	}
}

func (o *object) duration(key string, value time.Duration) {
	if value != 0 {
		o.text(key, value.String())
	}
}

func (o *object) list(key string, values []string) {
	if len(values) > 0 {
		o.raw(key, encodeList(values))
	}
}

func (o *object) stringMap(key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	m := object{}
	for _, k := range sortedKeys(values) {
		m.raw(k, payload.Quote(values[k]))
	}
	o.raw(key, m.json())
}

func (o *object) assignments(key string, list []Assignment) {
	if len(list) == 0 {
		return
	}
	m := object{}
	for _, a := range list {
		m.raw(a.Channel, payload.Quote(a.Expr))
	}
	o.raw(key, m.json())
}

func (o *object) policy(p *PolicySpec) {
	if len(p.Retry) > 0 {
		items := make([]payload.JSON, len(p.Retry))
		for i := range p.Retry {
			items[i] = encodeRetry(&p.Retry[i])
		}
		o.raw("retry", payload.Array(items))
	}
	o.duration("timeout", p.Timeout)
	o.duration("idle_timeout", p.IdleTimeout)
	o.text("error_handler", p.ErrorHandler)
}

func encodeRetry(r *RetrySpec) payload.JSON {
	o := object{}
	o.number("max_attempts", r.MaxAttempts)
	o.duration("initial_interval", r.InitialInterval)
	if r.Backoff != 0 {
		o.raw("backoff", payload.JSON(strconv.FormatFloat(r.Backoff, 'g', -1, 64)))
	}
	o.duration("max_interval", r.MaxInterval)
	o.flag("no_jitter", r.NoJitter)
	o.list("on", r.On)
	return o.json()
}

func encodeList(values []string) payload.JSON {
	items := make([]payload.JSON, len(values))
	for i, v := range values {
		items[i] = payload.Quote(v)
	}
	return payload.Array(items)
}
