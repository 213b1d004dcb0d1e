package graphfile

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// spec reads the whole file.
func (r *reader) spec(root *yaml.Node) *graph.Spec {
	s := &graph.Spec{}
	r.known(root, "", map[string]read{
		"graph":             r.text(&s.Name),
		"version":           r.text(&s.Version),
		"description":       r.text(&s.Description),
		"metadata":          r.textMap(&s.Metadata),
		"channels":          func(n *yaml.Node, path string) { s.Channels = r.channels(n, path) },
		"input":             r.texts(&s.Input),
		"output":            r.texts(&s.Output),
		"strict":            r.flag(&s.Strict),
		"input_schema":      r.json(&s.InputSchema),
		"output_schema":     r.json(&s.OutputSchema),
		"context_schema":    r.json(&s.ContextSchema),
		"nodes":             func(n *yaml.Node, path string) { s.Nodes = r.nodes(n, path) },
		"edges":             func(n *yaml.Node, path string) { s.Edges = r.edges(n, path) },
		"conditional_edges": func(n *yaml.Node, path string) { s.Branches = r.branches(n, path) },
		"interrupt_before":  r.texts(&s.InterruptBefore),
		"interrupt_after":   r.texts(&s.InterruptAfter),
		"step_limit":        r.number(&s.StepLimit),
		"step_timeout":      r.duration(&s.StepTimeout),
		"defaults":          func(n *yaml.Node, path string) { r.known(n, path, r.policy(&s.Defaults)) },
		"drift":             r.text(&s.Drift),
		"drift_ignore":      r.texts(&s.DriftIgnore),
	})
	return s
}

// channels reads {name: {reducer, default}}; {name: reducer} and a plain list
// of names are short forms.
func (r *reader) channels(n *yaml.Node, path string) []graph.ChannelSpec {
	var list []graph.ChannelSpec
	if n.Kind == yaml.SequenceNode {
		for i, item := range r.items(n, path) {
			if name, ok := r.scalar(item, at(path, i), "the name of a channel"); ok {
				r.lines[join(path, name)] = item.Line
				list = append(list, graph.ChannelSpec{Name: name})
			}
		}
		return list
	}
	for _, f := range r.fields(n, path, "a mapping of channels") {
		c := graph.ChannelSpec{Name: f.key}
		if value := f.value; value.Kind == yaml.ScalarNode && !isNull(value) {
			c.Reducer = value.Value
		} else {
			r.known(value, join(path, f.key), map[string]read{
				"reducer":  r.text(&c.Reducer),
				"function": r.text(&c.Function),
				"default":  r.json(&c.Default),
			})
		}
		list = append(list, c)
	}
	return list
}

func (r *reader) nodes(n *yaml.Node, path string) []graph.NodeSpec {
	var list []graph.NodeSpec
	for _, f := range r.fields(n, path, "a mapping of nodes") {
		list = append(list, r.node(f.key, f.value, join(path, f.key)))
	}
	return list
}

func (r *reader) node(name string, n *yaml.Node, path string) graph.NodeSpec {
	s := graph.NodeSpec{Name: name}
	readers := r.policy(&s.Policy)
	readers["description"] = r.text(&s.Description)
	readers["metadata"] = r.textMap(&s.Metadata)
	readers["reads"] = r.texts(&s.Reads)
	readers["defer"] = r.flag(&s.Defer)
	readers["destinations"] = r.names(&s.Destinations)
	readers["function"] = func(n *yaml.Node, path string) {
		s.Function = &graph.FunctionSpec{}
		r.short(n, path, &s.Function.Name, map[string]read{"name": r.text(&s.Function.Name)})
	}
	readers["expr"] = func(n *yaml.Node, path string) {
		s.Expr = &graph.ExprSpec{}
		r.known(n, path, map[string]read{
			"update": r.assignments(&s.Expr.Update),
			"goto":   r.expression(&s.Expr.Goto),
		})
	}
	readers["ask"] = func(n *yaml.Node, path string) { s.Ask = r.ask(n, path) }
	readers["graph"] = func(n *yaml.Node, path string) {
		s.Graph = &graph.SubgraphSpec{}
		r.short(n, path, &s.Graph.Name, map[string]read{
			"name":        r.text(&s.Graph.Name),
			"version":     r.text(&s.Graph.Version),
			"persistence": r.text(&s.Graph.Persistence),
		})
	}
	readers["remote"] = func(n *yaml.Node, path string) {
		s.Remote = &graph.RemoteSpec{}
		r.known(n, path, map[string]read{
			"endpoint": r.text(&s.Remote.Endpoint),
			"tls":      r.flag(&s.Remote.TLS),
		})
	}
	r.known(n, path, readers)
	return s
}

// short reads a mapping, or a single text in its place.
func (r *reader) short(n *yaml.Node, path string, to *string, readers map[string]read) {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		r.text(to)(n, path)
		return
	}
	r.known(n, path, readers)
}

func (r *reader) ask(n *yaml.Node, path string) *graph.AskSpec {
	s := &graph.AskSpec{}
	r.known(n, path, map[string]read{
		"when":      r.expression(&s.When),
		"value":     r.expression(&s.Value),
		"message":   r.expression(&s.Message),
		"key":       r.text(&s.Key),
		"reason":    r.text(&s.Reason),
		"schema":    r.json(&s.Schema),
		"update":    r.assignments(&s.Update),
		"otherwise": r.assignments(&s.Otherwise),
		"goto":      r.expression(&s.Goto),
		"assignees": r.texts(&s.Assignees),
		"ttl":       r.duration(&s.TTL),
		"expiry":    r.text(&s.Expiry),
		"default":   r.json(&s.Default),

		"drift":        r.text(&s.Drift),
		"drift_ignore": r.texts(&s.DriftIgnore),
	})
	return s
}

func (r *reader) policy(p *graph.PolicySpec) map[string]read {
	return map[string]read{
		"retry":         func(n *yaml.Node, path string) { p.Retry = r.retries(n, path) },
		"timeout":       r.duration(&p.Timeout),
		"idle_timeout":  r.duration(&p.IdleTimeout),
		"error_handler": r.text(&p.ErrorHandler),
	}
}

// retries reads one retry policy or a list of them.
func (r *reader) retries(n *yaml.Node, path string) []graph.RetrySpec {
	if n.Kind == yaml.MappingNode {
		r.resolve(n, at(path, 0))
		return []graph.RetrySpec{r.retry(n, path)}
	}
	var list []graph.RetrySpec
	for i, item := range r.items(n, path) {
		list = append(list, r.retry(item, at(path, i)))
	}
	return list
}

func (r *reader) retry(n *yaml.Node, path string) graph.RetrySpec {
	s := graph.RetrySpec{}
	r.known(n, path, map[string]read{
		"max_attempts":     r.number(&s.MaxAttempts),
		"initial_interval": r.duration(&s.InitialInterval),
		"backoff":          r.float(&s.Backoff),
		"max_interval":     r.duration(&s.MaxInterval),
		"no_jitter":        r.flag(&s.NoJitter),
		"on":               r.texts(&s.On),
	})
	return s
}

func (r *reader) assignments(to *[]graph.Assignment) read {
	return func(n *yaml.Node, path string) {
		list := []graph.Assignment{}
		for _, f := range r.fields(n, path, "a mapping from channels to expressions") {
			a := graph.Assignment{Channel: f.key}
			r.expression(&a.Expr)(f.value, join(path, f.key))
			list = append(list, a)
		}
		*to = list
	}
}

// expression reads a CEL expression. A mapping or a list with expressions as
// leaves is the expression that builds it.
func (r *reader) expression(to *string) read {
	return func(n *yaml.Node, path string) { *to = r.source(n, path) }
}

func (r *reader) source(n *yaml.Node, path string) string {
	if n = r.resolve(n, path); n == nil {
		return ""
	}
	switch n.Kind {
	case yaml.MappingNode:
		var parts []string
		for _, f := range r.fields(n, path, "a mapping") {
			parts = append(parts, string(payload.Quote(f.key))+": "+r.part(f.value, join(path, f.key)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for i, item := range n.Content {
			parts = append(parts, r.part(item, at(path, i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.ScalarNode:
		if strings.TrimSpace(n.Value) == "" { // also YAML's "key:" with nothing behind it
			r.add(n, path, graph.ReasonMissing, "the expression is empty; leave the field out, or say null")
			return ""
		}
		if isNull(n) {
			return "null"
		}
		return n.Value
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return ""
}

// part is an expression inside a mapping or a list. A leaf stands in
// parentheses unless it is a plain name or number, so that it stays one value.
func (r *reader) part(n *yaml.Node, path string) string {
	r.depth++
	defer func() { r.depth-- }()
	source := r.source(n, path)
	isWord := func(c rune) bool { return c == '_' || c == '.' || unicode.IsLetter(c) || unicode.IsDigit(c) }
	if n.Kind != yaml.ScalarNode || strings.TrimFunc(source, isWord) == "" {
		return source
	}
	return "(" + source + ")"
}
