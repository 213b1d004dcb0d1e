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

// fieldReader fills in a field.
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

// optionalDurationInto reads a duration of which 0 says something else than no duration.
func (r *reader) optionalDurationInto(to **time.Duration) fieldReader {
	return func(n *yaml.Node, path string) {
		var value time.Duration
		r.durationInto(&value)(n, path)
		*to = &value
	}
}

// durationInto reads "30s", "1h30m", "72h" or "3d".
func (r *reader) durationInto(to *time.Duration) fieldReader {
	return func(n *yaml.Node, path string) {
		s, ok := r.readScalar(n, path, "a duration like 30s")
		if !ok {
			return
		}
		value, err := graph.ParseDuration(s)
		if err != nil {
			r.addProblem(n, path, graph.ReasonInvalidType, "expected a duration like 500ms, 30s, 5m, 2h or 3d, found %q", s)
			return
		}
		*to = value
	}
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
