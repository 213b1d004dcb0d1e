package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// shape counts what makes a schema slow to compile, before it is compiled.
type shape struct {
	limits     Limits
	objects    int
	references map[string]bool
}

// checkShape refuses a schema whose form alone costs too much.
func checkShape(document any, limits Limits) error {
	s := shape{limits: limits, references: make(map[string]bool)}
	if err := s.walk(document, 1); err != nil {
		return err
	}
	if s.objects*len(s.references) > maxReferences {
		return &LimitError{Max: maxReferences, Got: s.objects * len(s.references), What: fmt.Sprintf(
			"the schema refers to %d places and has %d objects, and both multiply", len(s.references), s.objects)}
	}
	return nil
}

func (s *shape) walk(value any, depth int) error {
	if depth > maxDepth {
		return &LimitError{Max: maxDepth, Got: depth, What: "the schema is nested too deeply"}
	}
	switch v := value.(type) {
	case map[string]any:
		return s.object(v, depth)
	case []any:
		return s.list(v, depth)
	}
	return nil
}

func (s *shape) object(v map[string]any, depth int) error {
	if s.objects++; s.objects > s.limits.Objects {
		return &LimitError{Limit: limitObjects, Max: s.limits.Objects, Got: s.objects, What: "the schema has too many subschemas"}
	}
	for key, item := range v {
		if text, ok := item.(string); ok && strings.HasSuffix(key, "ef") && strings.HasPrefix(key, "$") {
			s.references[text] = true
		}
		if err := s.walk(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *shape) list(v []any, depth int) error {
	nested := 0
	for _, item := range v {
		if !isScalar(item) {
			nested++
		}
		if err := s.walk(item, depth+1); err != nil {
			return err
		}
	}
	if nested > maxList {
		return &LimitError{Max: maxList, Got: nested, What: "a list in the schema holds " + strconv.Itoa(nested) + " objects or lists"}
	}
	return nil
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// size counts the values of a constant; a number is compared exactly, which
// costs as much as comparing many strings.
func size(value any) int {
	n := 1
	switch v := value.(type) {
	case json.Number:
		n = numberSteps
	case map[string]any:
		for _, item := range v {
			n += size(item)
		}
	case []any:
		for _, item := range v {
			n += size(item)
		}
	}
	return n
}
