package graphfile

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
)

// Limits of a file: aliases of YAML can blow up a small text.
const (
	maxDepth  = 100
	maxValues = 200_000
)

// reader reads mappings, lists and values from the tree of a file and collects
// their problems. It knows nothing of graphs.
type reader struct {
	problems []graph.Problem
	lines    Positions
	values   int
	depth    int
}

// mappingField is an entry of a mapping.
type mappingField struct {
	key   string
	value *yaml.Node
}

func (r *reader) addProblem(n *yaml.Node, path string, reason graph.Reason, format string, args ...any) {
	r.problems = append(r.problems, graph.Problem{
		Path: path, Reason: reason, Message: fmt.Sprintf(format, args...), Line: n.Line,
	})
}

func (r *reader) addWrongType(n *yaml.Node, path, want string) {
	r.addProblem(n, path, graph.ReasonInvalidType, "expected %s, found %s", want, describeNode(n))
}

func describeNode(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		if n.ShortTag() == "!!str" {
			return fmt.Sprintf("the text %q", n.Value)
		}
		return n.Value
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return "something unreadable"
}

// resolveNode follows an alias and notes the line of the path. It is nil when the
// file is too large or refers to itself.
func (r *reader) resolveNode(n *yaml.Node, path string) *yaml.Node {
	if _, known := r.lines[path]; !known {
		r.lines[path] = n.Line
	}
	r.values++
	if r.values > maxValues || r.depth > maxDepth {
		if r.values != maxValues+2 { // say it once
			r.values = maxValues + 1
			r.addProblem(n, path, graph.ReasonOutOfRange, "the file is too large or nested too deeply")
			r.values++
		}
		return nil
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// readFields returns the entries of a mapping, each key once.
func (r *reader) readFields(n *yaml.Node, path, what string) []mappingField {
	if n = r.resolveNode(n, path); n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.addWrongType(n, path, what)
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	seen := make(map[string]bool, len(n.Content)/2)
	var merged, list []mappingField
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, r.readFields(value, path, "a mapping to merge")...)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			r.addWrongType(key, path, "a key")
			continue
		}
		if seen[key.Value] {
			r.addProblem(key, joinPath(path, key.Value), graph.ReasonDuplicateName, "%q appears twice", key.Value)
			continue
		}
		seen[key.Value] = true
		r.lines[joinPath(path, key.Value)] = key.Line
		list = append(list, mappingField{key: key.Value, value: value})
	}
	for _, f := range merged { // written fields win over merged fields
		if !seen[f.key] {
			seen[f.key] = true
			list = append(list, f)
		}
	}
	return list
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// readItems returns the elements of a list.
func (r *reader) readItems(n *yaml.Node, path string) []*yaml.Node {
	if n = r.resolveNode(n, path); n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.addWrongType(n, path, "a list")
		return nil
	}
	return n.Content
}

func indexPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// readScalar returns the text of a scalar of any type.
func (r *reader) readScalar(n *yaml.Node, path, want string) (string, bool) {
	if n = r.resolveNode(n, path); n == nil {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.addWrongType(n, path, want)
		return "", false
	}
	return n.Value, true
}
