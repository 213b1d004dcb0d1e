package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// shapeChecker counts the parts that make a schema slow to compile, before it is
// compiled.
type shapeChecker struct {
	limits     Limits
	objects    int
	references map[string]bool
}

// checkShape returns an error for a schema that costs too much by its form alone.
func checkShape(document any, limits Limits) error {
	s := shapeChecker{limits: limits, references: make(map[string]bool)}
	if err := s.checkValue(document, 1); err != nil {
		return err
	}
	if s.objects*len(s.references) > maxReferences {
		return &LimitError{Max: maxReferences, Got: s.objects * len(s.references), Problem: fmt.Sprintf(
			"the schema refers to %d places and has %d objects, and both multiply", len(s.references), s.objects)}
	}
	return nil
}

func (s *shapeChecker) checkValue(value any, depth int) error {
	if depth > maxDepth {
		return &LimitError{Max: maxDepth, Got: depth, Problem: "the schema is nested too deeply"}
	}
	switch v := value.(type) {
	case map[string]any:
		return s.checkObject(v, depth)
	case []any:
		return s.checkList(v, depth)
	}
	return nil
}

func (s *shapeChecker) checkObject(v map[string]any, depth int) error {
	if s.objects++; s.objects > s.limits.Objects {
		return &LimitError{Limit: limitObjects, Max: s.limits.Objects, Got: s.objects, Problem: "the schema has too many subschemas"}
	}
	for key, item := range v {
		if text, ok := item.(string); ok && strings.HasSuffix(key, "ef") && strings.HasPrefix(key, "$") {
			s.references[text] = true
		}
		if err := s.checkValue(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *shapeChecker) checkList(v []any, depth int) error {
	nested := 0
	for _, item := range v {
		if !isScalar(item) {
			nested++
		}
		if err := s.checkValue(item, depth+1); err != nil {
			return err
		}
	}
	if nested > maxList {
		return &LimitError{Max: maxList, Got: nested, Problem: "a list in the schema holds " + strconv.Itoa(nested) + " objects or lists"}
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

// countValues counts the values of a constant. A number counts as many, because its
// exact comparison costs as much as that of many strings.
func countValues(value any) int {
	n := 1
	switch v := value.(type) {
	case json.Number:
		n = numberSteps
	case map[string]any:
		for _, item := range v {
			n += countValues(item)
		}
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	}
	return n
}
