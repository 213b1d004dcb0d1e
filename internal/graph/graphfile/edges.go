package graphfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
)

// expandReserved accepts START and END for the reserved names.
func expandReserved(name string) string {
	switch name {
	case "START":
		return graph.Start
	case "END":
		return graph.End
	}
	return name
}

// nodeNamesInto reads a list of node names, or a single name.
func (r *specReader) nodeNamesInto(to *[]string) fieldReader {
	return func(n *yaml.Node, path string) {
		if n.Kind == yaml.ScalarNode && !isNull(n) {
			if name, ok := r.readScalar(n, path, "a node"); ok {
				*to = []string{expandReserved(name)}
			}
			return
		}
		r.textsInto(to)(n, path)
		for i := range *to {
			(*to)[i] = expandReserved((*to)[i])
		}
	}
}

// readEdges reads chains like "START -> a -> b" and mappings {from, to}. The
// problems of a graph count edges, so a chain notes its line for each of them.
func (r *specReader) readEdges(n *yaml.Node, path string) []graph.EdgeSpec {
	var list []graph.EdgeSpec
	for i, item := range r.readItems(n, path) {
		where := indexPath(path, i)
		var more []graph.EdgeSpec
		if item.Kind == yaml.MappingNode {
			more = r.readEdge(item, where)
		} else if text, ok := r.readScalar(item, where, "an edge like a -> b, or {from: a, to: b}"); ok {
			more = r.readChain(item, where, text)
		}
		for _, e := range more {
			r.lines[indexPath(path, len(list))] = item.Line
			list = append(list, e)
		}
	}
	return list
}

func (r *specReader) readEdge(n *yaml.Node, path string) []graph.EdgeSpec {
	var from, to []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch key := n.Content[i].Value; key {
		case "cases", "when", "expr", "router", "paths", "then", "in_worker":
			r.addProblem(n.Content[i], joinPath(path, key), graph.ReasonUnknownField,
				"unknown field %q: conditional edges belong under conditional_edges, a list beside edges", key)
			return nil
		}
	}
	r.readKnownFields(n, path, map[string]fieldReader{"from": r.nodeNamesInto(&from), "to": r.nodeNamesInto(&to)})
	if len(from) == 0 || len(to) == 0 {
		r.addProblem(n, path, graph.ReasonMissing, "an edge needs from and to")
		return nil
	}
	return connectNodes(from, to)
}

func connectNodes(from, to []string) []graph.EdgeSpec {
	list := make([]graph.EdgeSpec, 0, len(to))
	for _, target := range to {
		list = append(list, graph.EdgeSpec{From: from, To: target})
	}
	return list
}

// readChain reads "a -> b -> c". "[a, b] -> c" and "a + b -> c" wait for both,
// "a -> [b, c]" leads to both.
func (r *specReader) readChain(n *yaml.Node, path, text string) []graph.EdgeSpec {
	var list []graph.EdgeSpec
	var from []string
	for i, hop := range strings.Split(text, "->") {
		to := parseHop(hop)
		if len(to) == 0 {
			r.addProblem(n, path, graph.ReasonInvalidEdge, "a name is missing in %q; write an edge like a -> b", text)
			return nil
		}
		if i > 0 {
			list = append(list, connectNodes(from, to)...)
		}
		from = to
	}
	if len(list) == 0 {
		r.addProblem(n, path, graph.ReasonInvalidEdge, "%q leads nowhere; write an edge like a -> b", text)
	}
	return list
}

func parseHop(hop string) []string {
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
		names = append(names, expandReserved(name))
	}
	return names
}

func (r *specReader) readBranches(n *yaml.Node, path string) []graph.BranchSpec {
	var list []graph.BranchSpec
	for i, item := range r.readItems(n, path) {
		list = append(list, r.readBranch(item, indexPath(path, i)))
	}
	return list
}

func (r *specReader) readBranch(n *yaml.Node, path string) graph.BranchSpec {
	s := graph.BranchSpec{}
	r.readKnownFields(n, path, map[string]fieldReader{
		"from":      r.textInto(&s.From),
		"name":      r.textInto(&s.Name),
		"cases":     func(n *yaml.Node, path string) { s.Cases = r.readCases(n, path) },
		"expr":      r.expressionInto(&s.Expr),
		"router":    r.textInto(&s.Router),
		"in_worker": r.boolInto(&s.InWorker),
		"paths":     r.textMapInto(&s.Paths),
		"then":      r.nodeNamesInto(&s.Then),
	})
	s.From = expandReserved(s.From)
	for key, to := range s.Paths {
		s.Paths[key] = expandReserved(to)
	}
	return s
}

func (r *specReader) readCases(n *yaml.Node, path string) []graph.CaseSpec {
	var list []graph.CaseSpec
	for i, item := range r.readItems(n, path) {
		c := graph.CaseSpec{}
		r.readKnownFields(item, indexPath(path, i), map[string]fieldReader{
			"when": r.expressionInto(&c.When),
			"to":   r.nodeNamesInto(&c.To),
		})
		list = append(list, c)
	}
	return list
}
