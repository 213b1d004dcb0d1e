package items

import (
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// filter says what the keys of an object have to be. It is parsed once for a search, and reads each
// value once, however many keys it names.
type filter struct {
	conditions map[string]condition
	required   int // keys that an object must have
}

// condition is what one key of an object must have.
type condition struct {
	tests      []test
	isRequired bool // an object without the key does not match
}

// test is one comparison of the value of a key.
type test struct {
	operator operator
	operand  payload.JSON // of a comparison; of equality its normal text
	object   filter       // of isObject
	elements [][]test     // of isList
}

// operator is how a value is compared.
type operator string

// The operators. The first six are those of clients.
const (
	isEqual      operator = "$eq"
	isNotEqual   operator = "$ne"
	isGreater    operator = "$gt"
	isNotLess    operator = "$gte"
	isLess       operator = "$lt"
	isNotGreater operator = "$lte"
	isObject     operator = "object"
	isList       operator = "list"
)

// parseFilter parses the filter of a search, a JSON object. The error is an *Error: INVALID_FIELD.
func parseFilter(text payload.JSON) (filter, error) {
	if text == "" {
		return filter{}, nil
	}
	return parseObject(text, "")
}

// parseObject parses the conditions of an object at a place of the filter.
func parseObject(object payload.JSON, at string) (filter, error) {
	fields, err := payload.Fields(object)
	if err != nil {
		return filter{}, refuseFilter(at, "is no JSON object")
	}
	parsed := filter{conditions: make(map[string]condition, len(fields))}
	for _, field := range fields {
		tests, err := parseWanted(field.Value, strings.TrimPrefix(at+"."+field.Key, "."))
		if err != nil {
			return filter{}, err
		}
		isRequired := !matchesAll(tests, payload.Null) // as LangGraph takes a key that is not there
		if isRequired {
			parsed.required++
		}
		parsed.conditions[field.Key] = condition{tests, isRequired}
	}
	return parsed, nil
}

// parseWanted parses what one value has to be.
func parseWanted(wanted payload.JSON, at string) ([]test, error) {
	switch payload.KindOf(wanted) {
	case payload.ObjectKind:
		return parseWantedObject(wanted, at)
	case payload.ArrayKind:
		elements, err := payload.Elements(wanted)
		if err != nil {
			return nil, refuseFilter(at, "is no JSON")
		}
		list := test{operator: isList, elements: make([][]test, len(elements))}
		for i, element := range elements {
			if list.elements[i], err = parseWanted(element, at); err != nil {
				return nil, err
			}
		}
		return []test{list}, nil
	default:
		return []test{{operator: isEqual, operand: payload.NormalText(wanted)}}, nil
	}
}

// parseWantedObject parses operators, or what an object has to have.
func parseWantedObject(wanted payload.JSON, at string) ([]test, error) {
	fields, err := payload.Fields(wanted)
	if err != nil {
		return nil, refuseFilter(at, "is no JSON")
	}
	if !slices.ContainsFunc(fields, func(f payload.Field) bool { return strings.HasPrefix(f.Key, "$") }) {
		object, err := parseObject(wanted, at)
		return []test{{operator: isObject, object: object}}, err
	}
	tests := make([]test, 0, len(fields))
	for _, field := range fields {
		t, err := parseOperator(operator(field.Key), field.Value, at)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	return tests, nil
}

// parseOperator parses an operator of a client and its operand.
func parseOperator(o operator, operand payload.JSON, at string) (test, error) {
	switch o {
	case isEqual, isNotEqual:
		return test{operator: o, operand: payload.NormalText(operand)}, nil
	case isGreater, isNotLess, isLess, isNotGreater:
		if kind := payload.KindOf(operand); kind != payload.Number && kind != payload.String {
			return test{}, refuseFilter(at, "compares with %s by %s: want a number or a text", kind, o)
		}
		return test{operator: o, operand: operand}, nil
	default:
		return test{}, refuseFilter(at, "has the operator %.50q: want $eq, $ne, $gt, $gte, $lt or $lte", o)
	}
}

// refuseFilter refuses a filter for what is wrong at a place in it.
func refuseFilter(at, format string, args ...any) error {
	field := strings.TrimSuffix("filter."+at, ".")
	e := runtime.Errorf(runtime.ReasonInvalidField, "").WithViolation(field, format, args...).With("field", field)
	e.Message = field + ": " + e.Violations[0].Description
	return e
}

func (f *filter) isEmpty() bool { return len(f.conditions) == 0 }

// matches reports whether an object meets the filter.
func (f *filter) matches(object payload.JSON) bool {
	areMet, required := true, 0
	err := payload.EachField(object, func(key string, value payload.JSON) bool {
		c, has := f.conditions[key]
		if has && c.isRequired {
			required++
		}
		areMet = !has || matchesAll(c.tests, value)
		return areMet
	})
	return err == nil && areMet && required == f.required
}

func matchesAll(tests []test, value payload.JSON) bool {
	for i := range tests {
		if !tests[i].matches(value) {
			return false
		}
	}
	return true
}

func (t *test) matches(value payload.JSON) bool {
	switch t.operator {
	case isEqual:
		return payload.NormalText(value) == t.operand
	case isNotEqual:
		return payload.NormalText(value) != t.operand
	case isObject:
		return payload.KindOf(value) == payload.ObjectKind && t.object.matches(value)
	case isList:
		return t.matchesList(value)
	case isGreater:
		return isBefore(t.operand, value)
	case isNotLess:
		return isComparable(value, t.operand) && !isBefore(value, t.operand)
	case isLess:
		return isBefore(value, t.operand)
	case isNotGreater:
		return isComparable(value, t.operand) && !isBefore(t.operand, value)
	}
	return false
}

// matchesList reports whether a value is a list whose elements meet those of the filter.
func (t *test) matchesList(value payload.JSON) bool {
	elements, err := payload.Elements(value)
	if err != nil || len(elements) != len(t.elements) {
		return false
	}
	for i, element := range elements {
		if !matchesAll(t.elements[i], element) {
			return false
		}
	}
	return true
}

// isBefore reports whether a comes before b. Values of other kinds than both numbers or both texts
// have no order.
func isBefore(a, b payload.JSON) bool {
	before, err := payload.Less(a, b)
	return err == nil && before
}

func isComparable(a, b payload.JSON) bool {
	_, err := payload.Less(a, b)
	return err == nil
}
