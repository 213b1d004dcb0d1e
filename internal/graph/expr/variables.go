package expr

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// evaluation is a use of a program. It records which keys were looked up and
// missing, so that an error can name those that exist.
type evaluation struct {
	vars       graph.Vars
	meter      meter
	missedKeys []missedKey
	// decodedValues keeps the variables and state keys that were decoded, by name:
	// a loop may ask for the same large list again and again.
	decodedValues []decodedValue
}

type decodedValue struct {
	name  string
	value ref.Val
}

// decodeOnce decodes a value the first time it is asked for.
func (e *evaluation) decodeOnce(name string, read func() (payload.JSON, bool)) (ref.Val, bool) {
	for i := range e.decodedValues {
		if e.decodedValues[i].name == name {
			return e.decodedValues[i].value, true
		}
	}
	text, ok := read()
	if !ok {
		return nil, false
	}
	value := decoder{evaluation: e, where: name}.decodeValue(text)
	e.decodedValues = append(e.decodedValues, decodedValue{name: name, value: value})
	return value, true
}

type missedKey struct {
	where string
	key   string
	in    keyLister
}

// keyLister is a value with keys: an object, the state.
type keyLister interface{ listKeys() []string }

// recordMiss remembers the latest keys that were asked for in vain: a loop may ask
// for very many.
func (e *evaluation) recordMiss(where, key string, in keyLister) {
	if e == nil {
		return
	}
	if where == "" {
		where = "the map"
	}
	const most = 16
	if len(e.missedKeys) == most {
		copy(e.missedKeys, e.missedKeys[1:])
		e.missedKeys = e.missedKeys[:most-1]
	}
	e.missedKeys = append(e.missedKeys, missedKey{where: where, key: key, in: in})
}

// activation resolves the variables of an expression.
type activation struct{ evaluation *evaluation }

// ResolveName returns the value of a variable.
func (a activation) ResolveName(name string) (any, bool) {
	v := &a.evaluation.vars
	switch name {
	case "state":
		return a.stateValue(), true
	case "input":
		return a.decodeVariable(name, v.Input), true
	case "answer":
		return a.decodeVariable(name, v.Answer), true
	case "context":
		return a.decodeVariable(name, v.Context), true
	case "error":
		return a.decodeVariable(name, v.Failed), true
	case meterVariable:
		return a.evaluation, true
	}
	return nil, false
}

// Parent returns nil: there is one scope.
func (activation) Parent() interpreter.Activation { return nil }

func (a activation) decodeVariable(name string, text payload.JSON) ref.Val {
	value, _ := a.evaluation.decodeOnce(name, func() (payload.JSON, bool) { return text, true })
	return value
}

// stateValue returns a map over the channels, or the value of the whole state where that is a
// single value.
func (a activation) stateValue() ref.Val {
	reader := a.evaluation.vars.State
	if reader == nil {
		return &jsonObject{decoder: decoder{evaluation: a.evaluation, where: "state"}}
	}
	if text, ok := reader.Lookup(graph.Root); ok {
		return a.decodeVariable("state", text)
	}
	return &stateMap{evaluation: a.evaluation, reader: reader}
}

// stateMap is the state as a map. It reads the keys that are asked for.
type stateMap struct {
	evaluation *evaluation
	reader     graph.StateReader
}

func (s *stateMap) sourceText() payload.JSON {
	keys := s.reader.Keys()
	fields := make([]payload.Field, 0, len(keys))
	for _, key := range keys {
		if text, ok := s.reader.Lookup(key); ok {
			fields = append(fields, payload.Field{Key: key, Value: text})
		}
	}
	return payload.Object(fields)
}

// Find returns the value of a state key.
func (s *stateMap) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	value, ok := s.evaluation.decodeOnce("state."+string(name), func() (payload.JSON, bool) { return s.reader.Lookup(string(name)) })
	if !ok {
		s.evaluation.recordMiss("state", string(name), s)
	}
	return value, ok
}

func (s *stateMap) listKeys() []string { return s.reader.Keys() }

// Get returns the value of a state key, or an error.
func (s *stateMap) Get(key ref.Val) ref.Val { return getOrError(s, key) }

// Contains reports whether a state key is set.
func (s *stateMap) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	if !ok {
		return types.False
	}
	_, ok = s.reader.Lookup(string(name))
	return types.Bool(ok)
}

// Iterator goes over the keys that are set.
func (s *stateMap) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, s.reader.Keys()).Iterator()
}

// Size returns the number of keys that are set.
func (s *stateMap) Size() ref.Val { return types.Int(len(s.reader.Keys())) }

// Equal compares with any map.
func (s *stateMap) Equal(other ref.Val) ref.Val { return equalMaps(s, other) }

// ConvertToNative returns an error: results leave as JSON text.
func (*stateMap) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("the state cannot become %v here", t)
}

// ConvertToType converts to a map or to its type.
func (s *stateMap) ConvertToType(t ref.Type) ref.Val { return convertMap(s, t) }

// Type returns the map type.
func (*stateMap) Type() ref.Type { return types.MapType }

// Value returns the map itself; it has no native form.
func (s *stateMap) Value() any { return s }
