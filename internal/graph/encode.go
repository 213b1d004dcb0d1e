package graph

import (
	"strconv"
	"time"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Digest returns the version of a Spec that names none: "sha-" and 12 hex digits of its
// content. Name and content count, the order of channels and nodes does not, the
// spelling of expressions does.
func Digest(spec *Spec) string {
	unnamed := *spec
	unnamed.Version = ""
	return "sha-" + payload.CanonicalDigest(payload.JSON(EncodeSpec(&unnamed)))[:12]
}

// EncodeSpec writes a Spec as JSON with the field names of a graph file, so
// that graphfile reads it back. Fields that are not set are left out.
func EncodeSpec(s *Spec) string {
	o := jsonObject{}
	o.addText("graph", s.Name)
	o.addText("version", s.Version)
	o.addText("description", s.Description)
	o.addStringMap("metadata", s.Metadata)
	o.addJSON("channels", encodeChannels(s.Channels))
	o.addList("input", s.Input)
	o.addList("output", s.Output)
	o.addBool("strict", s.Strict)
	o.addJSON("input_schema", s.InputSchema)
	o.addJSON("output_schema", s.OutputSchema)
	o.addJSON("context_schema", s.ContextSchema)
	o.addJSON("nodes", encodeNodes(s.Nodes))
	o.addJSON("edges", encodeEdges(s.Edges))
	o.addJSON("conditional_edges", encodeBranches(s.Branches))
	o.addList("interrupt_before", s.InterruptBefore)
	o.addList("interrupt_after", s.InterruptAfter)
	o.addInt("step_limit", s.StepLimit)
	o.addDuration("step_timeout", s.StepTimeout)
	defaults := jsonObject{}
	defaults.addPolicy(&s.Defaults)
	o.addJSON("defaults", defaults.toJSONOrEmpty())
	o.addText("drift", s.Drift)
	o.addList("drift_ignore", s.DriftIgnore)
	return string(o.toJSON())
}

func encodeChannels(list []ChannelSpec) payload.JSON {
	all := jsonObject{}
	for i := range list {
		o := jsonObject{}
		o.addText("reducer", list[i].Reducer)
		o.addText("function", list[i].Function)
		o.addJSON("default", list[i].Default)
		all.addJSON(list[i].Name, o.toJSON())
	}
	return all.toJSON()
}

func encodeNodes(list []NodeSpec) payload.JSON {
	all := jsonObject{}
	for i := range list {
		n := &list[i]
		o := jsonObject{}
		o.addText("description", n.Description)
		o.addStringMap("metadata", n.Metadata)
		o.addList("reads", n.Reads)
		o.addBool("defer", n.Defer)
		if n.Destinations != nil {
			o.addJSON("destinations", encodeList(n.Destinations))
		}
		o.addPolicy(&n.Policy)
		o.addKinds(n)
		all.addJSON(n.Name, o.toJSON())
	}
	return all.toJSON()
}

func (o *jsonObject) addKinds(n *NodeSpec) {
	if s := n.Function; s != nil {
		k := jsonObject{}
		k.addText("name", s.Name)
		o.addJSON("function", k.toJSON())
	}
	if s := n.Expr; s != nil {
		k := jsonObject{}
		k.addAssignments("update", s.Update)
		k.addText("goto", s.Goto)
		o.addJSON("expr", k.toJSON())
	}
	if s := n.Ask; s != nil {
		o.addJSON("ask", encodeAsk(s))
	}
	if s := n.Graph; s != nil {
		k := jsonObject{}
		k.addText("name", s.Name)
		k.addText("version", s.Version)
		k.addText("persistence", s.Persistence)
		o.addJSON("graph", k.toJSON())
	}
	if s := n.Remote; s != nil {
		k := jsonObject{}
		k.addText("endpoint", s.Endpoint)
		k.addBool("tls", s.TLS)
		o.addJSON("remote", k.toJSON())
	}
}

func encodeAsk(s *AskSpec) payload.JSON {
	o := jsonObject{}
	o.addText("when", s.When)
	o.addText("value", s.Value)
	o.addText("message", s.Message)
	o.addText("key", s.Key)
	o.addText("reason", s.Reason)
	o.addJSON("schema", s.Schema)
	o.addAssignments("update", s.Update)
	o.addAssignments("otherwise", s.Otherwise)
	o.addText("goto", s.Goto)
	o.addNames("assignees", &s.Assignees)
	if s.People != nil {
		o.addJSON("people", encodePeople(s.People))
	}
	o.addText("priority", encodePriority(s.Priority))
	if len(s.Steps) > 0 {
		o.addJSON("steps", encodeSteps(s.Steps))
	}
	if s.Undo != nil {
		o.addText("undo", s.Undo.String())
	}
	o.addDuration("ttl", s.TTL)
	o.addText("ttl", s.TTLExpr)
	o.addText("expiry", s.Expiry)
	o.addJSON("default", s.Default)
	o.addText("default_expr", s.DefaultExpr)
	o.addText("drift", s.Drift)
	o.addList("drift_ignore", s.DriftIgnore)
	o.addList("secret", s.Secret)
	return o.toJSON()
}

func encodeEdges(list []EdgeSpec) payload.JSON {
	items := make([]payload.JSON, len(list))
	for i := range list {
		o := jsonObject{}
		if len(list[i].From) == 1 {
			o.addText("from", list[i].From[0])
		} else {
			o.addJSON("from", encodeList(list[i].From))
		}
		o.addText("to", list[i].To)
		items[i] = o.toJSON()
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
		o := jsonObject{}
		o.addText("from", s.From)
		o.addText("name", s.Name)
		if len(s.Cases) > 0 {
			o.addJSON("cases", encodeCases(s.Cases))
		}
		o.addText("expr", s.Expr)
		o.addText("router", s.Router)
		o.addBool("in_worker", s.InWorker)
		o.addStringMap("paths", s.Paths)
		if s.Then != nil {
			o.addJSON("then", encodeList(s.Then))
		}
		items[i] = o.toJSON()
	}
	return payload.Array(items)
}

func encodeCases(list []CaseSpec) payload.JSON {
	items := make([]payload.JSON, len(list))
	for i := range list {
		o := jsonObject{}
		o.addText("when", list[i].When)
		if len(list[i].To) == 1 {
			o.addText("to", list[i].To[0])
		} else {
			o.addJSON("to", encodeList(list[i].To))
		}
		items[i] = o.toJSON()
	}
	return payload.Array(items)
}

// jsonObject collects the fields that are set.
type jsonObject struct{ fields []payload.Field }

func (o *jsonObject) toJSON() payload.JSON { return payload.Object(o.fields) }

func (o *jsonObject) toJSONOrEmpty() payload.JSON {
	if len(o.fields) == 0 {
		return ""
	}
	return o.toJSON()
}

// addJSON adds a field unless its value is "".
func (o *jsonObject) addJSON(key string, value payload.JSON) {
	if value != "" {
		o.fields = append(o.fields, payload.Field{Key: key, Value: value})
	}
}

func (o *jsonObject) addText(key, value string) {
	if value != "" {
		o.addJSON(key, payload.Quote(value))
	}
}

func (o *jsonObject) addBool(key string, value bool) {
	if value {
		o.addJSON(key, "true")
	}
}

func (o *jsonObject) addInt(key string, value int) {
	if value != 0 {
		o.addJSON(key, payload.JSON(strconv.Itoa(value)))
	}
}

func (o *jsonObject) addDuration(key string, value time.Duration) {
	if value != 0 {
		o.addText(key, value.String())
	}
}

func (o *jsonObject) addList(key string, values []string) {
	if len(values) > 0 {
		o.addJSON(key, encodeList(values))
	}
}

func (o *jsonObject) addStringMap(key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	m := jsonObject{}
	for _, k := range sortedKeys(values) {
		m.addJSON(k, payload.Quote(values[k]))
	}
	o.addJSON(key, m.toJSON())
}

func (o *jsonObject) addAssignments(key string, list []Assignment) {
	if len(list) == 0 {
		return
	}
	m := jsonObject{}
	for _, a := range list {
		m.addJSON(a.Channel, payload.Quote(a.Expr))
	}
	o.addJSON(key, m.toJSON())
}

func (o *jsonObject) addPolicy(p *PolicySpec) {
	if len(p.Retry) > 0 {
		items := make([]payload.JSON, len(p.Retry))
		for i := range p.Retry {
			items[i] = encodeRetry(&p.Retry[i])
		}
		o.addJSON("retry", payload.Array(items))
	}
	o.addDuration("timeout", p.Timeout)
	o.addDuration("idle_timeout", p.IdleTimeout)
	o.addText("error_handler", p.ErrorHandler)
}

func encodeRetry(r *RetrySpec) payload.JSON {
	o := jsonObject{}
	o.addInt("max_attempts", r.MaxAttempts)
	o.addDuration("initial_interval", r.InitialInterval)
	if r.Backoff != 0 {
		o.addJSON("backoff", payload.JSON(strconv.FormatFloat(r.Backoff, 'g', -1, 64)))
	}
	o.addDuration("max_interval", r.MaxInterval)
	o.addBool("no_jitter", r.NoJitter)
	o.addList("on", r.On)
	return o.toJSON()
}

func encodeList(values []string) payload.JSON {
	items := make([]payload.JSON, len(values))
	for i, v := range values {
		items[i] = payload.Quote(v)
	}
	return payload.Array(items)
}
