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

// field is one entry of a mapping.
type field struct {
	key   string
	value *yaml.Node
}

func (r *reader) add(n *yaml.Node, path string, reason graph.Reason, format string, args ...any) {
	r.problems = append(r.problems, graph.Problem{
		Path: path, Reason: reason, Message: fmt.Sprintf(format, args...), Line: n.Line,
	})
}

func (r *reader) wrongType(n *yaml.Node, path, want string) {
	r.add(n, path, graph.ReasonInvalidType, "expected %s, found %s", want, describe(n))
}

func describe(n *yaml.Node) string {
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

// resolve follows an alias and notes the line of the path. It is nil when the
// file is too large or refers to itself.
func (r *reader) resolve(n *yaml.Node, path string) *yaml.Node {
	if _, known := r.lines[path]; !known {
		r.lines[path] = n.Line
	}
	r.values++
	if r.values > maxValues || r.depth > maxDepth {
		if r.values != maxValues+2 { // say it once
			r.values = maxValues + 1
			r.add(n, path, graph.ReasonOutOfRange, "the file is too large or nested too deeply")
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

// fields returns the entries of a mapping, each key once.
func (r *reader) fields(n *yaml.Node, path, what string) []field {
	if n = r.resolve(n, path); n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.wrongType(n, path, what)
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	seen := make(map[string]bool, len(n.Content)/2)
	var merged, list []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, r.fields(value, path, "a mapping to merge")...)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			r.wrongType(key, path, "a key")
			continue
		}
		if seen[key.Value] {
			r.add(key, join(path, key.Value), graph.ReasonDuplicateName, "%q appears twice", key.Value)
			continue
		}
		seen[key.Value] = true
		r.lines[join(path, key.Value)] = key.Line
		list = append(list, field{key: key.Value, value: value})
	}
	for _, f := range merged { // what is written here wins over what is merged
		if !seen[f.key] {
			seen[f.key] = true
			list = append(list, f)
		}
	}
	return list
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// read fills in one field.
type read func(n *yaml.Node, path string)

// known reads a mapping whose fields are fixed.
func (r *reader) known(n *yaml.Node, path string, readers map[string]read) {
	for _, f := range r.fields(n, path, "a mapping") {
		at := join(path, f.key)
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

// items returns the elements of a list.
func (r *reader) items(n *yaml.Node, path string) []*yaml.Node {
	if n = r.resolve(n, path); n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.wrongType(n, path, "a list")
		return nil
	}
	return n.Content
}

func at(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// scalar returns the text of a scalar of any type.
func (r *reader) scalar(n *yaml.Node, path, want string) (string, bool) {
	if n = r.resolve(n, path); n == nil {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.wrongType(n, path, want)
		return "", false
	}
	return n.Value, true
}

func (r *reader) text(to *string) read {
	return func(n *yaml.Node, path string) {
		if s, ok := r.scalar(n, path, "a text"); ok {
			*to = s
		}
	}
}

func (r *reader) flag(to *bool) read {
	return func(n *yaml.Node, path string) {
		if n = r.resolve(n, path); n == nil {
			return
		}
		value, err := strconv.ParseBool(strings.ToLower(n.Value))
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || err != nil {
			r.wrongType(n, path, "true or false")
			return
		}
		*to = value
	}
}

func (r *reader) number(to *int) read {
	return func(n *yaml.Node, path string) {
		s, ok := r.scalar(n, path, "a whole number")
		if !ok {
			return
		}
		value, err := strconv.Atoi(s)
		if err != nil {
			r.add(n, path, graph.ReasonInvalidType, "expected a whole number, found %s", s)
			return
		}
		*to = value
	}
}

func (r *reader) float(to *float64) read {
	return func(n *yaml.Node, path string) {
		s, ok := r.scalar(n, path, "a number")
		if !ok {
			return
		}
		value, err := strconv.ParseFloat(s, 64)
		if err != nil {
			r.add(n, path, graph.ReasonInvalidType, "expected a number, found %s", s)
			return
		}
		*to = value
	}
}

// duration reads "30s", "1h30m", "72h" or "3d".
func (r *reader) duration(to *time.Duration) read {
	return func(n *yaml.Node, path string) {
		s, ok := r.scalar(n, path, "a duration like 30s")
		if !ok {
			return
		}
		value, err := parseDuration(s)
		if err != nil {
			r.add(n, path, graph.ReasonInvalidType, "expected a duration like 500ms, 30s, 5m, 2h or 3d, found %q", s)
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

func (r *reader) texts(to *[]string) read {
	return func(n *yaml.Node, path string) {
		list := []string{}
		for i, item := range r.items(n, path) {
			if s, ok := r.scalar(item, at(path, i), "a text"); ok {
				list = append(list, s)
			}
		}
		*to = list
	}
}

func (r *reader) textMap(to *map[string]string) read {
	return func(n *yaml.Node, path string) {
		m := make(map[string]string)
		for _, f := range r.fields(n, path, "a mapping of texts") {
			if s, ok := r.scalar(f.value, join(path, f.key), "a text"); ok {
				m[f.key] = s
			}
		}
		*to = m
	}
}

// json reads any value as JSON text.
func (r *reader) json(to *payload.JSON) read {
	return func(n *yaml.Node, path string) {
		if text, ok := r.jsonText(n, path); ok {
			*to = text
		}
	}
}

func (r *reader) jsonText(n *yaml.Node, path string) (payload.JSON, bool) {
	if n = r.resolve(n, path); n == nil {
		return "", false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.jsonObject(n, path)
	case yaml.SequenceNode:
		r.depth++
		defer func() { r.depth-- }()
		items := make([]payload.JSON, 0, len(n.Content))
		for i, child := range n.Content {
			text, ok := r.jsonText(child, at(path, i))
			if !ok {
				return "", false
			}
			items = append(items, text)
		}
		return payload.Array(items), true
	case yaml.ScalarNode:
		return r.jsonScalar(n, path)
	case yaml.AliasNode, yaml.DocumentNode:
	}
	return "", false
}

func (r *reader) jsonObject(n *yaml.Node, path string) (payload.JSON, bool) {
	list := r.fields(n, path, "a mapping")
	r.depth++
	defer func() { r.depth-- }()
	fields := make([]payload.Field, 0, len(list))
	for _, f := range list {
		text, ok := r.jsonText(f.value, join(path, f.key))
		if !ok {
			return "", false
		}
		fields = append(fields, payload.Field{Key: f.key, Value: text})
	}
	return payload.Object(fields), true
}

// jsonScalar keeps the spelling of a number that is JSON; YAML's own
// spellings, like 0x1F or 1_000, are translated.
func (r *reader) jsonScalar(n *yaml.Node, path string) (payload.JSON, bool) {
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
		r.add(n, path, graph.ReasonInvalidJSON, "%s is not a number in JSON", n.Value)
		return "", false
	}
	// A number beyond floating point, like 1e400, is a text to the YAML library.
	if n.Style == 0 && payload.KindOf(payload.JSON(n.Value)) == payload.Number &&
		payload.Validate(n.Value, payload.Limits{}) == nil {
		return payload.JSON(n.Value), true
	}
	return payload.Quote(n.Value), true
}
