package schema

import (
	"fmt"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// Limits bound the cost of schemas. Zero fields mean the defaults.
type Limits struct {
	Bytes   int // of the text of a schema; 256 KiB
	Objects int // in a schema, and so its subschemas; 4096
	// Steps bound a check. They are counted before it begins, as if every
	// alternative were tried; 4 million, which is about half a second.
	Steps      int
	CacheBytes int // of compiled schemas that are kept; 32 MiB
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{{&l.Bytes, 256 << 10}, {&l.Objects, 4096}, {&l.Steps, 4_000_000}, {&l.CacheBytes, 32 << 20}} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

// Limits of a schema's form. No operator needs to change them, because no author
// writes schemas beyond them.
const (
	maxDepth       = 100    // of the JSON of a schema
	maxInPlace     = 128    // subschemas in a row that apply to the same value
	maxList        = 1000   // lists and objects in a list of a schema
	maxPattern     = 4096   // bytes of a regular expression
	maxPatternSize = 20_000 // instructions of a regular expression
	// maxPatternsSize bounds all expressions of a schema. Each counts twice,
	// because it is compiled to be checked and to be used.
	maxPatternsSize = 100_000
	maxReferences   = 4_000_000 // different references times objects
)

// LimitError is the error of a schema, or a value with its schema, that exceeds a
// limit.
type LimitError struct {
	Limit   string // the option that sets it, like max-schema-steps; "" = none does
	Max     int
	Got     int    // 0 = not known
	Problem string // the exceeded limit, and a remedy
}

// Error returns the problem and the limit.
func (e *LimitError) Error() string {
	if e.Limit == "" {
		return fmt.Sprintf("%s; the limit is %d", e.Problem, e.Max)
	}
	return fmt.Sprintf("%s; the limit is %d (%s)", e.Problem, e.Max, e.Limit)
}

// ExceededLimit returns the option, the limit and the need, for the error of a
// call.
func (e *LimitError) ExceededLimit() (option string, most, need int64) {
	return e.Limit, int64(e.Max), int64(e.Got)
}

// toRefusal returns the refusal of a check that exceeds a limit.
func (e *LimitError) toRefusal() error {
	return runtime.Errorf(runtime.ReasonSchemaLimitExceeded, "the check against the JSON Schema is refused: %w", e).
		WithLimit(e.ExceededLimit())
}
