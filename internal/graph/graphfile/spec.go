package graphfile

import (
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// specReader reads the parts of a graph.
type specReader struct{ reader }

// readSpec reads the whole file.
func (r *specReader) readSpec(root *yaml.Node) *graph.Spec {
	s := &graph.Spec{}
	r.readKnownFields(root, "", map[string]fieldReader{
		"graph":             r.textInto(&s.Name),
		"version":           r.textInto(&s.Version),
		"description":       r.textInto(&s.Description),
		"metadata":          r.textMapInto(&s.Metadata),
		"channels":          func(n *yaml.Node, path string) { s.Channels = r.readChannels(n, path) },
		"input":             r.textsInto(&s.Input),
		"output":            r.textsInto(&s.Output),
		"strict":            r.boolInto(&s.Strict),
		"input_schema":      r.jsonInto(&s.InputSchema),
		"output_schema":     r.jsonInto(&s.OutputSchema),
		"context_schema":    r.jsonInto(&s.ContextSchema),
		"nodes":             func(n *yaml.Node, path string) { s.Nodes = r.readNodes(n, path) },
		"edges":             func(n *yaml.Node, path string) { s.Edges = r.readEdges(n, path) },
		"conditional_edges": func(n *yaml.Node, path string) { s.Branches = r.readBranches(n, path) },
		"interrupt_before":  r.textsInto(&s.InterruptBefore),
		"interrupt_after":   r.textsInto(&s.InterruptAfter),
		"step_limit":        r.intInto(&s.StepLimit),
		"step_timeout":      r.durationInto(&s.StepTimeout),
		"defaults":          func(n *yaml.Node, path string) { r.readKnownFields(n, path, r.policyReaders(&s.Defaults)) },
		"drift":             r.textInto(&s.Drift),
		"drift_ignore":      r.textsInto(&s.DriftIgnore),
	})
	return s
}

// readChannels reads {name: {reducer, default}}; {name: reducer} and a plain list
// of names are short forms.
func (r *specReader) readChannels(n *yaml.Node, path string) []graph.ChannelSpec {
	var list []graph.ChannelSpec
	if n.Kind == yaml.SequenceNode {
		for i, item := range r.readItems(n, path) {
			if name, ok := r.readScalar(item, indexPath(path, i), "the name of a channel"); ok {
				r.lines[joinPath(path, name)] = item.Line
				list = append(list, graph.ChannelSpec{Name: name})
			}
		}
		return list
	}
	for _, f := range r.readFields(n, path, "a mapping of channels") {
		c := graph.ChannelSpec{Name: f.key}
		if value := f.value; value.Kind == yaml.ScalarNode && !isNull(value) {
			c.Reducer = value.Value
		} else {
			r.readKnownFields(value, joinPath(path, f.key), map[string]fieldReader{
				"reducer":  r.textInto(&c.Reducer),
				"function": r.textInto(&c.Function),
				"default":  r.jsonInto(&c.Default),
			})
		}
		list = append(list, c)
	}
	return list
}

func (r *specReader) readNodes(n *yaml.Node, path string) []graph.NodeSpec {
	var list []graph.NodeSpec
	for _, f := range r.readFields(n, path, "a mapping of nodes") {
		list = append(list, r.readNode(f.key, f.value, joinPath(path, f.key)))
	}
	return list
}

func (r *specReader) readNode(name string, n *yaml.Node, path string) graph.NodeSpec {
	s := graph.NodeSpec{Name: name}
	readers := r.policyReaders(&s.Policy)
	readers["description"] = r.textInto(&s.Description)
	readers["metadata"] = r.textMapInto(&s.Metadata)
	readers["reads"] = r.textsInto(&s.Reads)
	readers["defer"] = r.boolInto(&s.Defer)
	readers["destinations"] = r.nodeNamesInto(&s.Destinations)
	readers["function"] = func(n *yaml.Node, path string) {
		s.Function = &graph.FunctionSpec{}
		r.readTextOrFields(n, path, &s.Function.Name, map[string]fieldReader{"name": r.textInto(&s.Function.Name)})
	}
	readers["expr"] = func(n *yaml.Node, path string) {
		s.Expr = &graph.ExprSpec{}
		r.readKnownFields(n, path, map[string]fieldReader{
			"update": r.assignmentsInto(&s.Expr.Update),
			"goto":   r.expressionInto(&s.Expr.Goto),
		})
	}
	readers["ask"] = func(n *yaml.Node, path string) { s.Ask = r.readAsk(n, path) }
	readers["graph"] = func(n *yaml.Node, path string) {
		s.Graph = &graph.SubgraphSpec{}
		r.readTextOrFields(n, path, &s.Graph.Name, map[string]fieldReader{
			"name":        r.textInto(&s.Graph.Name),
			"version":     r.textInto(&s.Graph.Version),
			"persistence": r.textInto(&s.Graph.Persistence),
		})
	}
	readers["remote"] = func(n *yaml.Node, path string) {
		s.Remote = &graph.RemoteSpec{}
		r.readKnownFields(n, path, map[string]fieldReader{
			"endpoint": r.textInto(&s.Remote.Endpoint),
			"tls":      r.boolInto(&s.Remote.TLS),
		})
	}
	r.readKnownFields(n, path, readers)
	return s
}

// readTextOrFields reads a mapping, or a single text in its place.
func (r *specReader) readTextOrFields(n *yaml.Node, path string, to *string, readers map[string]fieldReader) {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		r.textInto(to)(n, path)
		return
	}
	r.readKnownFields(n, path, readers)
}

func (r *specReader) readAsk(n *yaml.Node, path string) *graph.AskSpec {
	s := &graph.AskSpec{}
	var last lastStep
	r.readKnownFields(n, path, map[string]fieldReader{
		"when":      r.expressionInto(&s.When),
		"value":     r.expressionInto(&s.Value),
		"message":   r.expressionInto(&s.Message),
		"key":       r.textInto(&s.Key),
		"reason":    r.textInto(&s.Reason),
		"schema":    r.jsonInto(&s.Schema),
		"update":    r.assignmentsInto(&s.Update),
		"otherwise": r.assignmentsInto(&s.Otherwise),
		"goto":      r.expressionInto(&s.Goto),
		"assignees": r.namesInto(&s.Assignees),
		"people":    func(n *yaml.Node, path string) { s.People = r.readPeople(n, path) },
		"priority":  r.textInto(&s.Priority),
		"steps":     func(n *yaml.Node, path string) { last = r.readSteps(n, path, s) },
		"undo":      r.optionalDurationInto(&s.Undo),
		"ttl":       r.durationOrExpressionInto(&s.TTL, &s.TTLExpr),
		"expiry":    r.textInto(&s.Expiry),
		"default":   r.jsonInto(&s.Default),

		"default_expr": r.expressionInto(&s.DefaultExpr),
		"drift":        r.textInto(&s.Drift),
		"drift_ignore": r.textsInto(&s.DriftIgnore),
		"secret":       r.textsInto(&s.Secret),
	})
	if last.node == nil {
		return s
	}
	if s.TTL != 0 || s.TTLExpr != "" || s.Expiry != "" || s.Default != "" || s.DefaultExpr != "" {
		r.addProblem(last.node, last.path, graph.ReasonConflict, "the question has ttl, expiry or default as well; say in one of them what happens last")
		return s
	}
	s.TTL, s.Expiry, s.Default = last.after, last.expiry, last.answer
	return s
}

// lastStep is the step with which a question ends.
type lastStep struct {
	node   *yaml.Node // nil = there is none
	path   string
	after  time.Duration
	expiry string
	answer payload.JSON
}

// readSteps reads what happens while a question is undecided. It returns the step that ends the
// question, which a graph has as its expiry.
func (r *specReader) readSteps(n *yaml.Node, path string, s *graph.AskSpec) (last lastStep) {
	for i, item := range r.readItems(n, path) {
		at := indexPath(path, i)
		if last.node != nil {
			r.addProblem(item, at, graph.ReasonConflict, "comes after the step that ends the question")
			return last
		}
		step, end := r.readStep(item, at)
		if end.node != nil {
			last = end
			continue
		}
		s.Steps = append(s.Steps, step)
	}
	return last
}

// readStep reads a step: one of remind, escalate, default, fail and cancel.
func (r *specReader) readStep(n *yaml.Node, path string) (step graph.StepSpec, end lastStep) {
	var given []string
	note := func(name string, read fieldReader) fieldReader {
		return func(n *yaml.Node, path string) {
			given = append(given, name)
			read(n, path)
		}
	}
	var isFailing, isCancelling bool
	people := func(n *yaml.Node, path string) {
		r.readKnownFields(n, path, map[string]fieldReader{
			"users": r.textsInto(&step.Users), "groups": r.textsInto(&step.Groups), "priority": r.textInto(&step.Priority),
		})
	}
	r.readKnownFields(n, path, map[string]fieldReader{
		"after":    r.durationInto(&step.After),
		"remind":   note("remind", people),
		"escalate": note("escalate", people),
		"default":  note("default", r.jsonInto(&end.answer)),
		"fail":     note("fail", r.boolInto(&isFailing)),
		"cancel":   note("cancel", r.boolInto(&isCancelling)),
	})
	if len(given) != 1 {
		r.addProblem(n, path, graph.ReasonMissing, "a step has one of remind, escalate, default, fail and cancel; this one has %d", len(given))
		return step, end
	}
	step.Escalates = given[0] == "escalate"
	switch {
	case given[0] == "default":
		end.expiry = graph.ExpiryResumeDefault
	case isFailing:
		end.expiry = graph.ExpiryFailNode
	case isCancelling:
		end.expiry = graph.ExpiryCancelRun
	case given[0] == "fail" || given[0] == "cancel":
		r.addProblem(n, path, graph.ReasonOutOfRange, "%s is false; leave the step out", given[0])
	}
	if end.expiry != "" {
		end.node, end.path, end.after = n, path, step.After
	}
	return step, end
}

// readPeople reads who may answer a question.
func (r *specReader) readPeople(n *yaml.Node, path string) *graph.PeopleSpec {
	s := &graph.PeopleSpec{}
	r.readKnownFields(n, path, map[string]fieldReader{
		"users":           r.namesInto(&s.Users),
		"groups":          r.namesInto(&s.Groups),
		"approvals":       r.positiveInto(&s.Approvals),
		"vetoes":          r.positiveInto(&s.Vetoes),
		"agree":           r.expressionInto(&s.Agree),
		"not_requester":   r.boolInto(&s.NotRequester),
		"exclusive":       r.boolInto(&s.Exclusive),
		"not_contributor": r.boolInto(&s.NotContributor),
		"delegable":       r.boolInto(&s.Delegable),
		"requester":       r.expressionInto(&s.Requester),
		"reveal": func(n *yaml.Node, path string) {
			r.readKnownFields(n, path, map[string]fieldReader{"users": r.textsInto(&s.RevealUsers), "groups": r.textsInto(&s.RevealGroups)})
		},
	})
	return s
}

// positiveInto reads a number that must be at least 1, where 0 stands for a field that is
// left out.
func (r *specReader) positiveInto(to *int) fieldReader {
	return func(n *yaml.Node, path string) {
		r.intInto(to)(n, path)
		if *to == 0 && !isNull(n) {
			*to = -1 // refused with the range
		}
	}
}

// namesInto reads a list of names, or a text: an expression that yields names.
func (r *specReader) namesInto(to *graph.NamesSpec) fieldReader {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && !isNull(n) {
			r.expressionInto(&to.Expr)(n, path)
			return
		}
		r.textsInto(&to.Names)(n, path)
	}
}

// durationOrExpressionInto reads a duration, or an expression that yields one.
func (r *specReader) durationOrExpressionInto(to *time.Duration, expression *string) fieldReader {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && !isNull(n) && strings.ContainsAny(n.Value, ".(['\"?") && !isDecimalDuration(n.Value) {
			r.expressionInto(expression)(n, path)
			return
		}
		r.durationInto(to)(n, path)
	}
}

func isDecimalDuration(text string) bool {
	_, err := graph.ParseDuration(text)
	return err == nil
}

func (r *specReader) policyReaders(p *graph.PolicySpec) map[string]fieldReader {
	return map[string]fieldReader{
		"retry":         func(n *yaml.Node, path string) { p.Retry = r.readRetries(n, path) },
		"timeout":       r.durationInto(&p.Timeout),
		"idle_timeout":  r.durationInto(&p.IdleTimeout),
		"error_handler": r.textInto(&p.ErrorHandler),
	}
}

// readRetries reads a retry policy or a list of them.
func (r *specReader) readRetries(n *yaml.Node, path string) []graph.RetrySpec {
	if n.Kind == yaml.MappingNode {
		r.resolveNode(n, indexPath(path, 0))
		return []graph.RetrySpec{r.readRetry(n, path)}
	}
	var list []graph.RetrySpec
	for i, item := range r.readItems(n, path) {
		list = append(list, r.readRetry(item, indexPath(path, i)))
	}
	return list
}

func (r *specReader) readRetry(n *yaml.Node, path string) graph.RetrySpec {
	s := graph.RetrySpec{}
	r.readKnownFields(n, path, map[string]fieldReader{
		"max_attempts":     r.intInto(&s.MaxAttempts),
		"initial_interval": r.durationInto(&s.InitialInterval),
		"backoff":          r.floatInto(&s.Backoff),
		"max_interval":     r.durationInto(&s.MaxInterval),
		"no_jitter":        r.boolInto(&s.NoJitter),
		"on":               r.textsInto(&s.On),
	})
	return s
}

func (r *specReader) assignmentsInto(to *[]graph.Assignment) fieldReader {
	return func(n *yaml.Node, path string) {
		list := []graph.Assignment{}
		for _, f := range r.readFields(n, path, "a mapping from channels to expressions") {
			a := graph.Assignment{Channel: f.key}
			r.expressionInto(&a.Expr)(f.value, joinPath(path, f.key))
			list = append(list, a)
		}
		*to = list
	}
}

// expressionInto reads a CEL expression. A mapping or a list with expressions as
// leaves is the expression that builds it.
func (r *specReader) expressionInto(to *string) fieldReader {
	return func(n *yaml.Node, path string) { *to = r.readExpression(n, path) }
}

func (r *specReader) readExpression(n *yaml.Node, path string) string {
	if n = r.resolveNode(n, path); n == nil {
		return ""
	}
	switch n.Kind {
	case yaml.MappingNode:
		var parts []string
		for _, f := range r.readFields(n, path, "a mapping") {
			parts = append(parts, string(payload.Quote(f.key))+": "+r.readSubexpression(f.value, joinPath(path, f.key)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		var parts []string
		for i, item := range n.Content {
			parts = append(parts, r.readSubexpression(item, indexPath(path, i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.ScalarNode:
		if strings.TrimSpace(n.Value) == "" { // also YAML's "key:" with nothing behind it
			r.addProblem(n, path, graph.ReasonMissing, "the expression is empty; leave the field out, or say null")
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

// readSubexpression reads an expression inside a mapping or a list. A leaf stands in
// parentheses unless it is a plain name or number, so that it stays a single value.
func (r *specReader) readSubexpression(n *yaml.Node, path string) string {
	r.depth++
	defer func() { r.depth-- }()
	source := r.readExpression(n, path)
	isWord := func(c rune) bool { return c == '_' || c == '.' || unicode.IsLetter(c) || unicode.IsDigit(c) }
	if n.Kind != yaml.ScalarNode || strings.TrimFunc(source, isWord) == "" {
		return source
	}
	return "(" + source + ")"
}
