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

// evaluation is one use of a program. It remembers which keys were asked for
// in vain, so that an error can name those that exist.
type evaluation struct {
	vars   graph.Vars
	meter  meter
	misses []miss
	// known keeps the variables and state keys that were decoded, by name:
	// a loop may ask for the same large list again and again.
	known []decoded
}

type decoded struct {
	name  string
	value ref.Val
}

// once decodes a value the first time it is asked for.
func (e *evaluation) once(name string, read func() (payload.JSON, bool)) (ref.Val, bool) {
	for i := range e.known {
		if e.known[i].name == name {
			return e.known[i].value, true
		}
	}
	text, ok := read()
	if !ok {
		return nil, false
	}
	value := decoder{e: e, where: name}.value(text)
	e.known = append(e.known, decoded{name: name, value: value})
	return value, true
}

type miss struct {
	where string
	key   string
	in    keyed
}

// keyed is what has keys: an object, the state.
type keyed interface{ keys() []string }

// missed remembers the latest keys that were asked for in vain: a loop may ask
// for very many.
func (e *evaluation) missed(where, key string, in keyed) {
	if e == nil {
		return
	}
	if where == "" {
		where = "the map"
	}
	const most = 16
	if len(e.misses) == most {
		copy(e.misses, e.misses[1:])
		e.misses = e.misses[:most-1]
	}
	e.misses = append(e.misses, miss{where: where, key: key, in: in})
}

// activation resolves the variables of an expression.
type activation struct{ e *evaluation }

// ResolveName returns the value of a variable.
func (a activation) ResolveName(name string) (any, bool) {
	v := &a.e.vars
	switch name {
	case "state":
		return a.state(), true
	case "input":
		return a.decode(name, v.Input), true
	case "answer":
		return a.decode(name, v.Answer), true
	case "context":
		return a.decode(name, v.Context), true
	case "error":
		return a.decode(name, v.Failed), true
	case meterName:
		return a.e, true
	}
	return nil, false
}

// Parent returns nil: there is one scope.
func (activation) Parent() interpreter.Activation { return nil }

func (a activation) decode(name string, text payload.JSON) ref.Val {
	value, _ := a.e.once(name, func() (payload.JSON, bool) { return text, true })
	return value
}

// state is a map over the channels; where the whole state is one value, it is
// that value.
func (a activation) state() ref.Val {
	reader := a.e.vars.State
	if reader == nil {
		return &object{d: decoder{e: a.e, where: "state"}}
	}
	if text, ok := reader.Lookup(graph.Root); ok {
		return a.decode("state", text)
	}
	return &stateMap{e: a.e, reader: reader}
}

// stateMap is the state as a map. It reads the keys that are asked for.
type stateMap struct {
	e      *evaluation
	reader graph.Reader
}

func (s *stateMap) carried() payload.JSON {
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
	value, ok := s.e.once("state."+string(name), func() (payload.JSON, bool) { return s.reader.Lookup(string(name)) })
	if !ok {
		s.e.missed("state", string(name), s)
	}
	return value, ok
}

func (s *stateMap) keys() []string { return s.reader.Keys() }

// Get returns the value of a state key, or an error.
func (s *stateMap) Get(key ref.Val) ref.Val { return get(s, key) }

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

// Size is the number of keys that are set.
func (s *stateMap) Size() ref.Val { return types.Int(len(s.reader.Keys())) }

// Equal compares with any map.
func (s *stateMap) Equal(other ref.Val) ref.Val { return equalMaps(s, other) }

// ConvertToNative is not offered: results leave as JSON text.
func (*stateMap) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("the state cannot become %v here", t)
}

// ConvertToType converts to a map or to its type.
func (s *stateMap) ConvertToType(t ref.Type) ref.Val { return convertMap(s, t) }

// Type is the map type.
func (*stateMap) Type() ref.Type { return types.MapType }

// Value returns the map itself; it has no native form.
func (s *stateMap) Value() any { return s }
