package file

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// Time is a time in a document, in UTC to the second. A wrong one is an *Error with
// its line.
type Time struct {
	time.Time
}

// NewTime returns a time as documents show it. The zero time stays zero.
func NewTime(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Second)}
}

// UnmarshalYAML reads a time of RFC 3339.
func (t *Time) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.Parse(time.RFC3339, node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: cannot unmarshal a value into time.Time", node.Line)}}
	}
	*t = NewTime(parsed)
	return nil
}

// MarshalYAML writes a time of RFC 3339.
func (t Time) MarshalYAML() (any, error) { return t.Time, nil }
