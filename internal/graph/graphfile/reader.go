package graphfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// Limits of a file: aliases of YAML can blow up a small text.
const (
	maxDepth  = 100
	maxValues = 200_000
)

// reader walks the tree of a file and collects what is wrong with it.
type reader struct {
	problems []graph.Problem
	lines    Positions
	values   int
	depth    int
}

// mappingField is one entry of a mapping.
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
	for _, f := range merged { // what is written here wins over what is merged
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

// fieldReader fills in one field.
type fieldReader func(n *yaml.Node, path string)

// readKnownFields reads a mapping whose fields are fixed.
func (r *reader) readKnownFields(n *yaml.Node, path string, readers map[string]fieldReader) {
	for _, f := range r.readFields(n, path, "a mapping") {
		at := joinPath(path, f.key)
		if do, ok := readers[f.key]; ok {
			do(f.value, at)
			continue
		}
		names := make([]string, 0, len(readers))
		for name := range readers {
			names = append(names, name)
		}
		r.problems = append(r.problems, graph.Problem{
			Path: at, Reason: graph.ReasonUnknownField, Line: r.lines[at],
			Message: fmt.Sprintf("unknown field %q%s", f.key, graph.Suggest(f.key, names)),
		})
	}
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

func (r *reader) textInto(to *string) fieldReader {
	return func(n *yaml.Node, path string) {
		if s, ok := r.readScalar(n, path, "a text"); ok {
			*to = s
		}
	}
}

func (r *reader) boolInto(to *bool) fieldReader {
	return func(n *yaml.Node, path string) {
		if n = r.resolveNode(n, path); n == nil {
			return
		}
		value, err := strconv.ParseBool(strings.ToLower(n.Value))
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || err != nil {
			r.addWrongType(n, path, "true or false")
			return
		}
		*to = value
	}
}

func (r *reader) intInto(to *int) fieldReader {
	return func(n *yaml.Node, path string) {
		s, ok := r.readScalar(n, path, "a whole number")
		if !ok {
			return
		}
		value, err := strconv.Atoi(s)
		if err != nil {
			r.addProblem(n, path, graph.ReasonInvalidType, "expected a whole number, found %s", s)
			return
		}
		*to = value
	}
}

func (r *reader) floatInto(to *float64) fieldReader {
	return func(n *yaml.Node, path string) {
		s, ok := r.readScalar(n, path, "a number")
		if !ok {
			return
		}
		value, err := strconv.ParseFloat(s, 64)
		if err != nil {
			r.addProblem(n, path, graph.ReasonInvalidType, "expected a number, found %s", s)
			return
		}
		*to = value
	}
}

// durationInto reads "30s", "1h30m", "72h" or "3d".
func (r *reader) durationInto(to *time.Duration) fieldReader {
	return func(n *yaml.Node, path string) {
		s, ok := r.readScalar(n, path, "a duration like 30s")
		if !ok {
			return
		}
		value, err := parseDuration(s)
		if err != nil {
			r.addProblem(n, path, graph.ReasonInvalidType, "expected a duration like 500ms, 30s, 5m, 2h or 3d, found %q", s)
			return
		}
		*to = value
	}
}

func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		const most = 100 * 365
		if err != nil || n > most || n < -most {
			return 0, fmt.Errorf("not a number of days: %q", days)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(s)
}

func (r *reader) textsInto(to *[]string) fieldReader {
	return func(n *yaml.Node, path string) {
		list := []string{}
		for i, item := range r.readItems(n, path) {
			if s, ok := r.readScalar(item, indexPath(path, i), "a text"); ok {
				list = append(list, s)
			}
		}
		*to = list
	}
}

func (r *reader) textMapInto(to *map[string]string) fieldReader {
	return func(n *yaml.Node, path string) {
		m := make(map[string]string)
		for _, f := range r.readFields(n, path, "a mapping of texts") {
			if s, ok := r.readScalar(f.value, joinPath(path, f.key), "a text"); ok {
				m[f.key] = s
			}
		}
		*to = m
	}
}

// jsonInto reads any value as JSON text.
func (r *reader) jsonInto(to *payload.JSON) fieldReader {
	return func(n *yaml.Node, path string) {
		if text, ok := r.readJSONText(n, path); ok {
			*to = text
		}
	}
}

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
