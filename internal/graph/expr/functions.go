package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/graphd-dev/graphd/internal/graph/expr/syntax"
)

// library declares send and the functions that syntax.RewriteTree puts in.
type library struct{}

func ownFunctions() cel.EnvOption { return cel.Lib(library{}) }

// CompileOptions declares the functions. Their bodies are in functionBodies.
func (library) CompileOptions() []cel.EnvOption {
	dyn := cel.DynType
	element, key, value := cel.TypeParamType("E"), cel.TypeParamType("K"), cel.TypeParamType("V")
	list, mapping := cel.ListType(element), cel.MapType(key, value)
	options := []cel.EnvOption{
		cel.Function("send", cel.Overload("send_string_dyn", []*cel.Type{cel.StringType, dyn}, dyn)),
		cel.Function(syntax.PlainFunction, cel.Overload("@plain_dyn", []*cel.Type{dyn}, dyn)),
		cel.Function(syntax.ObjectFunction, cel.Overload("@object_list", []*cel.Type{cel.ListType(dyn)}, dyn)),
		cel.Function(syntax.EachFunction,
			cel.Overload("@each_list", []*cel.Type{list, cel.IntType}, list),
			cel.Overload("@each_map", []*cel.Type{mapping, cel.IntType}, mapping)),
	}
	for _, name := range []string{"@add", "@subtract", "@multiply", "@divide"} {
		options = append(options, cel.Function(name, cel.Overload(name+"_dyn_dyn", []*cel.Type{dyn, dyn}, dyn)))
	}
	return options
}

// functionBodies has the bodies of our own functions, and the comparisons, which
// the library does without a function.
func functionBodies() map[string]functionBody {
	return map[string]functionBody{
		"send":                makeSend,
		syntax.PlainFunction:  plainValue,
		syntax.ObjectFunction: makeObject,
		syntax.EachFunction:   chargeLoop,
		"cel.@mapInsert":      insertEntries,
		operators.Equals:      func(_ *meter, x, y ref.Val, _ []ref.Val) ref.Val { return types.Equal(x, y) },
		operators.NotEquals:   func(_ *meter, x, y ref.Val, _ []ref.Val) ref.Val { return types.Bool(types.Equal(x, y) != types.True) },
		"@add":                makeOperator("add", addValues),
		"@subtract": makeOperator("subtract", func(_ *meter, x, y ref.Val, _ []ref.Val) ref.Val {
			if a, ok := x.(traits.Subtractor); ok {
				return a.Subtract(y)
			}
			return nil
		}),
		"@multiply": makeOperator("multiply", func(_ *meter, x, y ref.Val, _ []ref.Val) ref.Val {
			if a, ok := x.(traits.Multiplier); ok {
				return a.Multiply(y)
			}
			return nil
		}),
		"@divide": makeOperator("divide", func(_ *meter, x, y ref.Val, _ []ref.Val) ref.Val {
			if a, ok := x.(traits.Divider); ok {
				return a.Divide(y)
			}
			return nil
		}),
	}
}

// addValues adds; two lists become a joinedList.
func addValues(m *meter, x, y ref.Val, _ []ref.Val) ref.Val {
	left, ok := x.(traits.Lister)
	right, both := y.(traits.Lister)
	if ok && both {
		return concatenateLists(m, left, right)
	}
	if a, ok := x.(traits.Adder); ok {
		return a.Add(y)
	}
	return nil
}

// joinedList is two lists by reference. Each level adds a call to reach an
// element, so levels are few.
type joinedList struct {
	traits.Lister

	levels int
}

func concatenateLists(m *meter, x, y traits.Lister) ref.Val {
	const most = 8
	pair, ok := x.Add(y).(traits.Lister)
	if !ok {
		return types.NewErr("cannot add these lists")
	}
	levels := max(levelsOf(x), levelsOf(y)) + 1
	if levels <= most {
		return &joinedList{Lister: pair, levels: levels}
	}
	n := elementCount(pair)
	m.chargeSteps(n)
	m.chargeBytes(n, 32)
	items := make([]ref.Val, n)
	for i := range items {
		items[i] = pair.Get(types.Int(i))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, items)
}

func levelsOf(l traits.Lister) int {
	if j, ok := l.(*joinedList); ok {
		return j.levels
	}
	return 0
}

// mixedArithmetic declares, for checking only, that + - * / take a whole number
// and a fraction together; syntax.RewriteTree sees to it that they do.
func mixedArithmetic() []cel.EnvOption {
	i, d := cel.IntType, cel.DoubleType
	var options []cel.EnvOption
	for _, operator := range []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide} {
		options = append(options, cel.Function(operator,
			cel.Overload(operator+"int_double", []*cel.Type{i, d}, d),
			cel.Overload(operator+"double_int", []*cel.Type{d, i}, d)))
	}
	return options
}

// ProgramOptions returns nil: the functions bring their implementation along.
func (library) ProgramOptions() []cel.ProgramOption { return nil }

// makeSend makes a Send as the runtime reads it: {"$send": [node, value]}.
func makeSend(_ *meter, node, value ref.Val, _ []ref.Val) ref.Val {
	if _, ok := node.(types.String); !ok {
		return types.NewErr("send takes the name of a node and a value, not %s", node.Type().TypeName())
	}
	pair := types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{node, value})
	o := &jsonObject{}
	o.putEntry(objectEntry{key: "$send", value: pair})
	return o
}

// makeObject builds a map that keeps the order in which the author wrote its
// keys: [key, value, key, value, …].
func makeObject(_ *meter, pairs, _ ref.Val, _ []ref.Val) ref.Val {
	list, ok := pairs.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(pairs)
	}
	o := &jsonObject{decoder: decoder{where: "the map"}}
	for it := list.Iterator(); it.HasNext() == types.True; {
		key, value := it.Next(), it.Next()
		name, ok := keyName(key)
		if !ok {
			return types.NewErr("a key of type %s cannot be the key of a JSON object", key.Type().TypeName())
		}
		if o.putEntry(objectEntry{key: name, value: value}) {
			return types.NewErr("the map has the key %q twice", name)
		}
	}
	return o
}

// keyName spells the key of a map as the key of a JSON object.
func keyName(key ref.Val) (string, bool) {
	switch key.(type) {
	case types.String, types.Int, types.Uint, types.Bool:
		name, ok := key.ConvertToType(types.StringType).(types.String)
		return string(name), ok
	}
	return "", false
}

// makeOperator makes an operator that takes a whole number and a fraction together,
// and returns an error in words when it cannot.
func makeOperator(verb string, apply functionBody) functionBody {
	return func(m *meter, x, y ref.Val, all []ref.Val) ref.Val {
		for _, v := range [...]ref.Val{x, y} {
			if n, ok := v.(spelledNumber); ok && n.isWhole() {
				return types.NewErr("cannot %s %s: expressions compute with 64-bit integers; "+
					"the add reducer sums numbers of any size", verb, n.text)
			}
		}
		x, y = plainNumber(m, x), plainNumber(m, y)
		x, y = matchNumberTypes(x, y)
		result := apply(m, x, y, all)
		if result == nil || types.IsError(result) && isNoOverload(result) {
			return types.NewErr("cannot %s %s and %s; convert one of them, for example with string(…) or int(…)",
				verb, x.Type().TypeName(), y.Type().TypeName())
		}
		return result
	}
}

func isNoOverload(v ref.Val) bool {
	e, ok := v.(*types.Err)
	return ok && e.String() == types.NoSuchOverloadErr().(*types.Err).String() //nolint:errcheck,forcetypeassert // always an Err
}

// plainNumber returns a number without its spelling, and other values as they are.
func plainNumber(m *meter, v ref.Val) ref.Val {
	if n, ok := v.(spelledNumber); ok {
		return n.toPlain(m)
	}
	return v
}

func asDouble(v ref.Val) ref.Val {
	if n, ok := v.(spelledNumber); ok {
		return n.Double
	}
	return v
}

// matchNumberTypes makes both numbers fractions when either is.
func matchNumberTypes(x, y ref.Val) (left, right ref.Val) {
	i, xWhole := x.(types.Int)
	j, yWhole := y.(types.Int)
	_, xFraction := x.(types.Double)
	_, yFraction := y.(types.Double)
	switch {
	case xWhole && yFraction:
		return types.Double(i), y
	case xFraction && yWhole:
		return x, types.Double(j)
	}
	return x, y
}
