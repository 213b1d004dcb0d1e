package graphfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
)

// nodeName accepts START and END for the reserved names.
func nodeName(name string) string {
	switch name {
	case "START":
		return graph.Start
	case "END":
		return graph.End
	}
	return name
}

// names reads a list of node names, or a single one.
func (r *reader) names(to *[]string) read {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && !isNull(n) {
			if name, ok := r.scalar(n, path, "a node"); ok {
				*to = []string{nodeName(name)}
			}
			return
		}
		r.texts(to)(n, path)
		for i := range *to {
			(*to)[i] = nodeName((*to)[i])
		}
	}
}

// edges reads chains like "START -> a -> b" and mappings {from, to}. The
// problems of a graph count edges, so a chain notes its line for each of them.
func (r *reader) edges(n *yaml.Node, path string) []graph.EdgeSpec {
	var list []graph.EdgeSpec
	for i, item := range r.items(n, path) {
		where := at(path, i)
		var more []graph.EdgeSpec
		if item.Kind == yaml.MappingNode {
			more = r.edge(item, where)
		} else if text, ok := r.scalar(item, where, "an edge like a -> b, or {from: a, to: b}"); ok {
			more = r.chain(item, where, text)
		}
		for _, e := range more {
			r.lines[at(path, len(list))] = item.Line
			list = append(list, e)
		}
	}
	return list
}

func (r *reader) edge(n *yaml.Node, path string) []graph.EdgeSpec {
	var from, to []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i].Value; key {
		case "cases", "when", "expr", "router", "paths", "then", "in_worker":
			r.add(n.Content[i], join(path, key), graph.ReasonUnknownField,
				"unknown field %q: conditional edges belong under conditional_edges, a list beside edges", key)
			return nil
		}
	}
	r.known(n, path, map[string]read{"from": r.names(&from), "to": r.names(&to)})
	if len(from) == 0 || len(to) == 0 {
		r.add(n, path, graph.ReasonMissing, "an edge needs from and to")
		return nil
	}
	return connect(from, to)
}

func connect(from, to []string) []graph.EdgeSpec {
	list := make([]graph.EdgeSpec, 0, len(to))
	for _, target := range to {
		list = append(list, graph.EdgeSpec{From: from, To: target})
	}
	return list
}

// chain reads "a -> b -> c". "[a, b] -> c" and "a + b -> c" wait for both,
// "a -> [b, c]" leads to both.
func (r *reader) chain(n *yaml.Node, path, text string) []graph.EdgeSpec {
	var list []graph.EdgeSpec
	var from []string
	for i, hop := range strings.Split(text, "->") {
		to := hopNames(hop)
		if len(to) == 0 {
			r.add(n, path, graph.ReasonInvalidEdge, "a name is missing in %q; write an edge like a -> b", text)
			return nil
		}
		if i > 0 {
			list = append(list, connect(from, to)...)
		}
		from = to
	}
	if len(list) == 0 {
		r.add(n, path, graph.ReasonInvalidEdge, "%q leads nowhere; write an edge like a -> b", text)
	}
	return list
}

func hopNames(hop string) []string {
	hop = strings.TrimSpace(hop)
	separator := " + "
	if inside, ok := strings.CutPrefix(hop, "["); ok {
		hop, separator = strings.TrimSuffix(inside, "]"), ","
	}
	var names []string
	for name := range strings.SplitSeq(hop, separator) {
		name = strings.TrimSpace(name)
		if name == "" {
			return nil
		}
		names = append(names, nodeName(name))
	}
	return names
}

func (r *reader) branches(n *yaml.Node, path string) []graph.BranchSpec {
	var list []graph.BranchSpec
	for i, item := range r.items(n, path) {
		list = append(list, r.branch(item, at(path, i)))
	}
	return list
}

func (r *reader) branch(n *yaml.Node, path string) graph.BranchSpec {
	s := graph.BranchSpec{}
	r.known(n, path, map[string]read{
		"from":      r.text(&s.From),
		"name":      r.text(&s.Name),
		"cases":     func(n *yaml.Node, path string) { s.Cases = r.cases(n, path) },
		"expr":      r.expression(&s.Expr),
		"router":    r.text(&s.Router),
		"in_worker": r.flag(&s.InWorker),
		"paths":     r.textMap(&s.Paths),
		"then":      r.names(&s.Then),
	})
	s.From = nodeName(s.From)
	for key, to := range s.Paths {
		s.Paths[key] = nodeName(to)
	}
	return s
}

func (r *reader) cases(n *yaml.Node, path string) []graph.CaseSpec {
	var list []graph.CaseSpec
	for i, item := range r.items(n, path) {
		c := graph.CaseSpec{}
		r.known(item, at(path, i), map[string]read{
			"when": r.expression(&c.When),
			"to":   r.names(&c.To),
		})
		list = append(list, c)
	}
	return list
}
