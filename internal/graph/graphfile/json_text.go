package graphfile

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

func (r *reader) readJSONText(n *yaml.Node, path string) (payload.JSON, bool) {
	if n = r.resolveNode(n, path); n == nil {
		return "", false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.readJSONObject(n, path)
	case yaml.SequenceNode:
		r.depth++
		defer func() { r.depth-- }()
		items := make([]payload.JSON, 0, len(n.Content))
		for i, child := range n.Content {
			text, ok := r.readJSONText(child, indexPath(path, i))
			if !ok {
				return "", false
			}
			items = append(items, text)
		}
		return payload.Array(items), true
	case yaml.ScalarNode:
		return r.readJSONScalar(n, path)
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return "", false
}

func (r *reader) readJSONObject(n *yaml.Node, path string) (payload.JSON, bool) {
	list := r.readFields(n, path, "a mapping")
	r.depth++
	defer func() { r.depth-- }()
	fields := make([]payload.Field, 0, len(list))
	for _, f := range list {
		text, ok := r.readJSONText(f.value, joinPath(path, f.key))
		if !ok {
			return "", false
		}
		fields = append(fields, payload.Field{Key: f.key, Value: text})
	}
	return payload.Object(fields), true
}

// readJSONScalar keeps the spelling of a number that is JSON; YAML's own
// spellings, like 0x1F or 1_000, are translated.
func (r *reader) readJSONScalar(n *yaml.Node, path string) (payload.JSON, bool) {
	switch n.ShortTag() {
	case "!!null":
		return payload.Null, true
	case "!!bool":
		return payload.JSON(strings.ToLower(n.Value)), true
	case "!!int", "!!float":
		if payload.Validate(n.Value, payload.Limits{}) == nil {
			return payload.JSON(n.Value), true
		}
		if value, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			return payload.JSON(strconv.FormatInt(value, 10)), true
		}
		text := strings.TrimPrefix(strings.ReplaceAll(n.Value, "_", ""), "+")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			text = strconv.FormatFloat(value, 'g', -1, 64)
			if payload.Validate(text, payload.Limits{}) == nil {
				return payload.JSON(text), true
			}
		}
		r.addProblem(n, path, graph.ReasonInvalidJSON, "%s is not a number in JSON", n.Value)
		return "", false
	}
	// A number beyond floating point, like 1e400, is a text to the YAML library.
	if n.Style == 0 && payload.KindOf(payload.JSON(n.Value)) == payload.Number &&
		payload.Validate(n.Value, payload.Limits{}) == nil {
		return payload.JSON(n.Value), true
	}
	return payload.Quote(n.Value), true
}
