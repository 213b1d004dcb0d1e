package syntax

import "cel.dev/cel-go/common/operators"

// Names of the functions that RewriteTree puts in. Authors cannot write them.
const (
	PlainFunction  = "@plain"  // gives a value that was carried in CEL's own types
	ObjectFunction = "@object" // makes a map of [key, value, …]
	EachFunction   = "@each"   // charges the passes of a loop over a list or map
)

// mixedOperator maps CEL's operators to their lenient forms.
func mixedOperator(operator string) (function string, ok bool) {
	switch operator {
	case operators.Add:
		return "@add", true
	case operators.Subtract:
		return "@subtract", true
	case operators.Multiply:
		return "@multiply", true
	case operators.Divide:
		return "@divide", true
	}
	return "", false
}
