package expr

import (
	"math/bits"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/graphd-dev/graphd/internal/graph/expr/syntax"
)

// price charges a call before it happens. x and y are the first two arguments,
// nil where there are fewer; all are the arguments of a call with more. Its
// result, if any, replaces the call's.
type price func(m *meter, x, y ref.Val, all []ref.Val) ref.Val

// listPrices returns the price of every function that an expression may call. New
// refuses an environment with a function that is not here.
func listPrices() map[string]price {
	table := map[string]price{
		operators.Add:         priceAdd,
		"@add":                priceAdd,
		operators.Equals:      priceComparison,
		operators.NotEquals:   priceComparison,
		operators.In:          priceSearch,
		"_in_":                priceSearch,
		"in":                  priceSearch,
		syntax.EachFunction:   priceOfOne,
		syntax.ObjectFunction: priceObject,
		syntax.PlainFunction:  priceOfOne, // it charges by itself

		"size": priceReading, "contains": priceReading, "startsWith": priceReading, "endsWith": priceReading,
		"trim": priceReading, "bool": priceReading, "int": priceReading, "uint": priceReading,
		"double": priceReading, "duration": priceReading, "timestamp": priceReading,
		"string": priceCopy(1), "bytes": priceCopy(1),
		"base64.encode": priceCopy(4), "base64.encodeUrl": priceCopy(4),
		"base64.decode": priceCopy(4), "base64.decodeUrl": priceCopy(4),
		"strings.quote": priceCopy(8),
		// These work on a copy of 4 bytes per character.
		"charAt": priceCopy(6), "substring": priceCopy(6), "reverse": priceReverse,
		"lowerAscii": priceCopy(6), "upperAscii": priceCopy(6),
		"indexOf": priceNaiveSearch, "lastIndexOf": priceNaiveSearch,
		"split": priceSplit, "join": priceJoin, "replace": priceReplace, "format": priceFormat,
		overloads.Matches: priceMatch,

		"json.encode": refuseFunction, "json.parse": refuseFunction, "yaml.encode": refuseFunction, "yaml.parse": refuseFunction,

		"lists.range": priceRange, "flatten": priceFlatten, "slice": priceOfList(0, 64),
		"distinct": priceDistinct, "sort": priceSort, sortFunction: priceSort,
		"optional.unwrap": priceOfList(0, 64), "unwrapOpt": priceOfList(0, 64),
		"first": priceOfOne, "last": priceOfOne,
		"math.@max": priceOfList(1, 0), "math.@min": priceOfList(1, 0),
		"sets.contains": priceOfPairs, "sets.equivalent": priceOfPairs, "sets.intersects": priceOfPairs,
		"hasAll": priceOfPairs, "hasAny": priceOfPairs, "hasExactly": priceOfPairs, "hasOnly": priceOfPairs,
		"cel.@mapInsert": priceInsertion,
	}
	for _, name := range comparisonFunctions() {
		table[name] = priceReading
	}
	for _, name := range constantPriceFunctions() {
		table[name] = priceOfOne
	}
	for _, name := range timestampFunctions() {
		table[name] = priceCalendar
	}
	return table
}

// sortFunction is the function behind the macro sortBy.
const sortFunction = "@sortByAssociatedKeys"

// comparisonFunctions lists the comparisons of scalars and texts.
func comparisonFunctions() []string {
	return []string{operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals}
}

// constantPriceFunctions lists the functions whose work and result do not grow.
func constantPriceFunctions() []string {
	return []string{
		operators.LogicalNot, operators.Negate, operators.Modulo, operators.NotStrictlyFalse, "__not_strictly_false__",
		operators.Subtract, operators.Multiply, operators.Divide, "@subtract", "@multiply", "@divide",
		"dyn", "type", "send",
		"math.abs", "math.bitAnd", "math.bitNot", "math.bitOr", "math.bitShiftLeft", "math.bitShiftRight", "math.bitXor",
		"math.ceil", "math.floor", "math.isFinite", "math.isInf", "math.isNaN", "math.round", "math.sign", "math.sqrt",
		"math.trunc",
		"hasValue", "value", "optional.none", "optional.of", "optional.ofNonZeroValue", "or", "orValue",
		"cel.@block",
		// Of the operators below the interpreter makes something other than calls.
		operators.LogicalAnd, operators.LogicalOr, operators.Conditional, operators.Index, operators.OptIndex,
		operators.OptSelect,
	}
}

// timestampFunctions lists the functions of timestamps, which may look up a time zone.
func timestampFunctions() []string {
	return []string{
		"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds",
		"getMinutes", "getMonth", "getSeconds",
	}
}

func priceOfOne(m *meter, _, _ ref.Val, _ []ref.Val) ref.Val {
	m.chargeSteps(1)
	return nil
}

func priceReading(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	m.chargeRead(textLen(x) + textLen(y))
	return nil
}

// priceCopy returns the price of a function that reads a text and makes size bytes of
// each of its bytes.
func priceCopy(size int64) price {
	return func(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
		n := textLen(x)
		m.chargeRead(n + textLen(y))
		m.chargeBytes(n*size+32, 1)
		return nil
	}
}

func priceReverse(m *meter, x, y ref.Val, all []ref.Val) ref.Val {
	if _, ok := x.(types.String); ok {
		return priceCopy(6)(m, x, y, all)
	}
	return priceOfList(0, 64)(m, x, y, all)
}

// priceOfList returns the price of a function that reads each element of a list, with
// its content when deep, and makes size bytes of each.
func priceOfList(deep, size int64) price {
	return func(m *meter, x, _ ref.Val, _ []ref.Val) ref.Val {
		list, ok := x.(traits.Lister)
		if !ok {
			m.chargeSteps(1)
			return nil
		}
		n := elementCount(list)
		m.chargeSteps(n + 1)
		if deep > 0 {
			m.chargeSteps(m.estimateBytes(list) / 32 * deep)
		}
		m.chargeBytes(n, size)
		return nil
	}
}

// priceAdd charges +: the copy of two texts or bytes, a pair of lists by reference. In a
// loop the first list grows in place.
func priceAdd(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	if n := textLen(x) + textLen(y); n > 0 {
		m.chargeRead(n)
		m.chargeBytes(n+16, 1)
		return nil
	}
	m.chargeSteps(1)
	if _, ok := x.(traits.MutableLister); ok {
		m.chargeBytes(elementCount(y), 48)
	} else if _, ok := x.(traits.Lister); ok {
		m.chargeBytes(1, 128)
	}
	return nil
}

func priceComparison(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	if isScalar(x) || isScalar(y) {
		m.chargeSteps(1)
		return nil
	}
	m.chargeRead(m.estimateBytes(x) + m.estimateBytes(y))
	return nil
}

func isScalar(v ref.Val) bool {
	switch v.(type) {
	case types.Bool, types.Int, types.Uint, types.Double, types.Null, spelledNumber:
		return true
	}
	return false
}

func priceSearch(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	list, ok := y.(traits.Lister)
	if !ok {
		m.chargeSteps(1)
		return nil
	}
	m.chargeSteps(elementCount(list))
	m.chargeRead(m.estimateBytes(list) + m.estimateBytes(x))
	return nil
}

// priceOfPairs charges the comparison of every element of a list with every element of another
// list.
func priceOfPairs(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	m.chargeProduct(elementCount(x)+1, m.estimateBytes(y)/baseBytes+1)
	m.chargeProduct(elementCount(y)+1, m.estimateBytes(x)/baseBytes+1)
	return nil
}

// chargeProduct charges x times y steps.
func (m *meter) chargeProduct(x, y int64) {
	if m != nil && y > 0 && x > m.steps/y {
		m.stopEvaluation(LimitSteps, m.limits.MaxSteps, 0)
	}
	m.chargeSteps(x * y)
}

func priceDistinct(m *meter, x, _ ref.Val, _ []ref.Val) ref.Val {
	n := elementCount(x)
	m.chargeProduct(n/4+1, m.estimateBytes(x)/baseBytes+1)
	m.chargeBytes(n, 48)
	return nil
}

func priceSort(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	n, weight := elementCount(x), m.estimateBytes(x)
	if y != nil {
		weight += m.estimateBytes(y)
	}
	rounds := int64(bits.Len64(uint64(n))) + 1
	m.chargeProduct(rounds, 2*n+weight/32+1)
	m.chargeBytes(n, 64)
	return nil
}

func priceRange(m *meter, x, _ ref.Val, _ []ref.Val) ref.Val {
	if n, ok := wholeNumber(x); ok && n > 0 {
		m.chargeRead(n)
		m.chargeBytes(n, 16)
	}
	return nil
}

// priceFlatten counts the elements that flatten will yield: by reference a list
// may stand in it many times.
func priceFlatten(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	depth := int64(1)
	if n, ok := wholeNumber(y); ok {
		depth = n
	}
	if list, ok := x.(traits.Lister); ok {
		m.chargeFlatten(list, depth)
	}
	return nil
}

func (m *meter) chargeFlatten(list traits.Lister, depth int64) {
	n := elementCount(list)
	m.chargeSteps(n + 1)
	if depth <= 0 {
		m.chargeBytes(n, 64)
		return
	}
	for i := range n {
		if inner, ok := list.Get(types.Int(i)).(traits.Lister); ok {
			m.chargeFlatten(inner, depth-1)
		} else {
			m.chargeBytes(1, 64)
		}
	}
}

// priceNaiveSearch charges a search that compares at every place.
func priceNaiveSearch(m *meter, x, y ref.Val, all []ref.Val) ref.Val {
	if len(all) > 1 {
		x, y = all[0], all[1]
	}
	n, part := textLen(x), textLen(y)
	m.chargeProduct(n/64+1, part+1)
	m.chargeBytes(n+part, 4)
	return nil
}

func priceSplit(m *meter, x, y ref.Val, all []ref.Val) ref.Val {
	if len(all) > 1 {
		x, y = all[0], all[1]
	}
	text, _ := x.(types.String)
	by, _ := y.(types.String)
	m.chargeRead(int64(len(text)))
	parts := int64(strings.Count(string(text), string(by))) + 1
	if len(all) > 2 {
		if most, ok := wholeNumber(all[2]); ok && most >= 0 {
			parts = min(parts, most)
		}
	}
	m.chargeBytes(parts, 16)
	return nil
}

func priceJoin(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	n := elementCount(x)
	m.chargeSteps(n + 1)
	weight := m.estimateBytes(x)
	m.chargeRead(weight)
	// The parts are collected first, 16 bytes each.
	m.chargeBytes(weight+baseBytes, 2)
	m.chargeBytes(n, 16+textLen(y))
	return nil
}

func priceReplace(m *meter, _, _ ref.Val, all []ref.Val) ref.Val {
	if len(all) < 3 {
		return nil
	}
	text, _ := all[0].(types.String)
	old, _ := all[1].(types.String)
	m.chargeRead(int64(len(text)))
	places := int64(strings.Count(string(text), string(old)))
	if len(all) > 3 {
		if most, ok := wholeNumber(all[3]); ok && most >= 0 {
			places = min(places, most)
		}
	}
	m.chargeBytes(int64(len(text))+baseBytes, 1)
	m.chargeBytes(places, max(0, textLen(all[2])-int64(len(old))))
	m.chargeRead(places)
	return nil
}

// priceFormat takes the most that the clauses can yield: a precision is at
// most 100, a fraction has up to 309 digits before its point.
func priceFormat(m *meter, x, y ref.Val, all []ref.Val) ref.Val {
	if len(all) > 1 {
		x, y = all[0], all[1]
	}
	text, _ := x.(types.String)
	clauses := int64(strings.Count(string(text), "%"))
	weight := m.estimateBytes(y)
	m.chargeRead(int64(len(text)) + weight + baseBytes*clauses)
	m.chargeBytes(2*int64(len(text))+4*weight+baseBytes, 1)
	m.chargeBytes(clauses, 512)
	return nil
}

// refuseFunction refuses a function of the library that expressions cannot name.
func refuseFunction(*meter, ref.Val, ref.Val, []ref.Val) ref.Val {
	return types.NewErr("this function is not offered")
}

func priceObject(m *meter, x, _ ref.Val, _ []ref.Val) ref.Val {
	n := elementCount(x) / 2
	m.chargeSteps(n + 1)
	m.chargeBytes(n+1, 112)
	return nil
}

// priceInsertion charges another entry of the map that a loop builds, or the entries of a map.
func priceInsertion(m *meter, _, y ref.Val, all []ref.Val) ref.Val {
	n := int64(1)
	if len(all) == 0 {
		n = elementCount(y)
	}
	m.chargeSteps(n + 1)
	m.chargeBytes(n, 192)
	return nil
}

func priceCalendar(m *meter, _, y ref.Val, _ []ref.Val) ref.Val {
	m.chargeSteps(1)
	if y != nil {
		m.chargeSteps(100) // reads the rules of a time zone
		m.chargeBytes(1, 16<<10)
	}
	return nil
}

func priceMatch(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	pattern, ok := y.(types.String)
	if !ok {
		m.chargeSteps(1)
		return nil
	}
	m.chargeRead(int64(len(pattern)))
	m.chargeBytes(int64(len(pattern))+baseBytes, 64)
	size := regexSize(string(pattern))
	m.checkRegexSize(size)
	m.chargeRegexCompile(size)
	m.chargeRegexMatch(size, textLen(x))
	return nil
}
