package expr

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Names of the functions that rewrite puts in. Authors cannot write them.
const (
	plainFunction  = "@plain"
	objectFunction = "@object"
)

// arithmetic maps CEL's operators to their lenient forms.
func arithmetic(operator string) (function string, ok bool) {
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

// library declares send and what rewrite needs.
type library struct{}

func ownFunctions() cel.EnvOption { return cel.Lib(library{}) }

// CompileOptions declares the functions.
func (library) CompileOptions() []cel.EnvOption {
	dyn := cel.DynType
	binary := func(name string, f func(x, y ref.Val) ref.Val) cel.EnvOption {
		return cel.Function(name,
			cel.Overload(name+"_dyn_dyn", []*cel.Type{dyn, dyn}, dyn, cel.BinaryBinding(f)))
	}
	return []cel.EnvOption{
		cel.Function("send",
			cel.Overload("send_string_dyn", []*cel.Type{cel.StringType, dyn}, dyn, cel.BinaryBinding(send))),
		cel.Function(plainFunction,
			cel.Overload("@plain_dyn", []*cel.Type{dyn}, dyn, cel.UnaryBinding(plain))),
		cel.Function(objectFunction,
			cel.Overload("@object_list", []*cel.Type{cel.ListType(dyn)}, dyn, cel.UnaryBinding(makeObject))),
		binary("@add", calculate("add", func(x, y ref.Val) ref.Val {
			if a, ok := x.(traits.Adder); ok {
				return a.Add(y)
			}
			return nil
		})),
		binary("@subtract", calculate("subtract", func(x, y ref.Val) ref.Val {
			if a, ok := x.(traits.Subtractor); ok {
				return a.Subtract(y)
			}
			return nil
		})),
		binary("@multiply", calculate("multiply", func(x, y ref.Val) ref.Val {
			if a, ok := x.(traits.Multiplier); ok {
				return a.Multiply(y)
			}
			return nil
		})),
		binary("@divide", calculate("divide", func(x, y ref.Val) ref.Val {
			if a, ok := x.(traits.Divider); ok {
				return a.Divide(y)
			}
			return nil
		})),
	}
}

// mixedArithmetic declares, for checking only, that + - * / take a whole number
// and a fraction together; rewrite sees to it that they do.
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

// ProgramOptions is empty: the functions bring their implementation along.
func (library) ProgramOptions() []cel.ProgramOption { return nil }

// send makes what the runtime takes for a Send: {"$send": [node, value]}.
func send(node, value ref.Val) ref.Val {
	pair := types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{node, value})
	o := &object{}
	o.put(entry{key: "$send", value: pair})
	return o
}

// makeObject builds a map that keeps the order in which the author wrote its
// keys: [key, value, key, value, …].
func makeObject(pairs ref.Val) ref.Val {
	list, ok := pairs.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(pairs)
	}
	o := &object{d: decoder{where: "the map"}}
	for it := list.Iterator(); it.HasNext() == types.True; {
		key, value := it.Next(), it.Next()
		name, ok := keyName(key)
		if !ok {
			return types.NewErr("a key of type %s cannot be the key of a JSON object", key.Type().TypeName())
		}
		if o.put(entry{key: name, value: value}) {
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

// calculate makes an operator that takes a whole number and a fraction
// together, and says what is wrong in words when it cannot.
func calculate(verb string, apply func(x, y ref.Val) ref.Val) func(x, y ref.Val) ref.Val {
	return func(x, y ref.Val) ref.Val {
		for _, v := range []ref.Val{x, y} {
			if n, ok := v.(number); ok && n.whole() {
				return types.NewErr("cannot %s %s: expressions compute with 64-bit integers; "+
					"the add reducer sums numbers of any size", verb, n.text)
			}
		}
		x, y = numeric(x), numeric(y)
		x, y = level(x, y)
		result := apply(x, y)
		if result == nil || types.IsError(result) && isOverload(result) {
			return types.NewErr("cannot %s %s and %s; convert one of them, for example with string(…) or int(…)",
				verb, x.Type().TypeName(), y.Type().TypeName())
		}
		return result
	}
}

func isOverload(v ref.Val) bool {
	e, ok := v.(*types.Err)
	return ok && e.String() == types.NoSuchOverloadErr().(*types.Err).String() //nolint:errcheck,forcetypeassert // always an Err
}

func numeric(v ref.Val) ref.Val {
	if n, ok := v.(number); ok {
		return n.Double
	}
	return v
}

// level makes both numbers fractions when one of them is.
func level(x, y ref.Val) (left, right ref.Val) {
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
