package payload

import (
	"fmt"
	"math"
	"strconv"
)

// OperandError says that two values cannot be combined.
type OperandError struct {
	Op      string // "add", "merge", "compare", …
	Left    Kind   // the present value
	Right   Kind   // the update
	Problem string // the remedy
}

// Error names the operation, both kinds and the remedy.
func (e *OperandError) Error() string {
	return fmt.Sprintf("cannot %s %s and %s: %s", e.Op, e.Left, e.Right, e.Problem)
}

// Add combines two values as + does: numbers are summed, strings and arrays
// are joined. Whole numbers of any size and decimal fractions are summed
// exactly; only exponents beyond 4096 fall back to floating point. The error
// is an *OperandError, or a *SyntaxError for text that is not JSON.
func Add(a, b JSON) (JSON, error) {
	a, b = Trim(a), Trim(b)
	left, right := KindOf(a), KindOf(b)
	if left != right {
		return "", &OperandError{Op: "add", Left: left, Right: right, Problem: "both must be of one kind"}
	}
	if err := checkWellFormed(a, b); err != nil {
		return "", err
	}
	switch left {
	case Number:
		return addNumbers(string(a), string(b))
	case String:
		return a[:len(a)-1] + b[1:], nil
	case ArrayKind:
		return joinArrays(a, b), nil
	case None, NullKind, Bool, ObjectKind:
	}
	return "", &OperandError{
		Op: "add", Left: left, Right: right, Problem: "only numbers, strings and arrays can be added",
	}
}

// Less reports whether a comes before b: numbers by exact value, strings by
// their code points. The error is an *OperandError, or a *SyntaxError.
func Less(a, b JSON) (bool, error) {
	a, b = Trim(a), Trim(b)
	left, right := KindOf(a), KindOf(b)
	if left != right || left != Number && left != String {
		return false, &OperandError{
			Op: "compare", Left: left, Right: right, Problem: "both must be numbers, or both strings",
		}
	}
	if err := checkWellFormed(a, b); err != nil {
		return false, err
	}
	if left == String {
		return unescapeString(string(a)) < unescapeString(string(b)), nil
	}
	return compareNumbers(string(a), string(b)) < 0, nil
}

func checkWellFormed(values ...JSON) error {
	for _, j := range values {
		s := newScanner(string(j))
		if !s.skipValue() || !s.expectEnd() {
			return s.problemError()
		}
	}
	return nil
}

func addNumbers(a, b string) (JSON, error) {
	if x, y, ok := parseSmallInts(a, b); ok {
		return JSON(strconv.FormatInt(x+y, 10)), nil
	}
	x, exactX := parseDecimal(a)
	y, exactY := parseDecimal(b)
	if exactX && exactY {
		return x.addDecimal(y).toJSON(), nil
	}
	f, _ := strconv.ParseFloat(a, 64) // out of range is ±Inf, seen below
	g, _ := strconv.ParseFloat(b, 64)
	total := f + g
	if math.IsInf(total, 0) || math.IsNaN(total) {
		return "", &OperandError{
			Op: "add", Left: Number, Right: Number, Problem: "the sum is larger than a number can be",
		}
	}
	return JSON(strconv.FormatFloat(total, 'g', -1, 64)), nil
}

// parseSmallInts returns both numbers when they and their sum fit easily.
func parseSmallInts(a, b string) (x, y int64, ok bool) {
	const safe = 18 // digits
	if len(a) > safe || len(b) > safe {
		return 0, 0, false
	}
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	return x, y, errX == nil && errY == nil
}

// joinArrays puts the elements of b behind those of a, as text.
func joinArrays(a, b JSON) JSON {
	left, right := Trim(a[1:len(a)-1]), Trim(b[1:len(b)-1])
	switch {
	case left == "":
		return b
	case right == "":
		return a
	}
	return "[" + left + "," + right + "]"
}
