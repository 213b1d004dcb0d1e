package graph

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
)

// decodeJSON reads JSON text into v. Numbers that land in an any are json.Number.
func decodeJSON(text []byte, v any) error {
	if !holdsAny(reflect.TypeOf(v)) {
		return json.Unmarshal(text, v) // without the buffer of a decoder
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// anyHolders remembers holdsAny by type. A program has a bounded number of types.
var anyHolders sync.Map // of reflect.Type to bool

// holdsAny reports whether a value of a type may hold an any.
func holdsAny(t reflect.Type) bool {
	if known, ok := anyHolders.Load(t); ok {
		return known == true
	}
	holds := findAny(t, map[reflect.Type]bool{})
	anyHolders.Store(t, holds)
	return holds
}

// findAny looks for an any in a type. The types of seen are looked at already.
func findAny(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == nil || seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return findAny(t.Elem(), seen)
	case reflect.Struct:
		for field := range t.Fields() {
			if findAny(field.Type, seen) {
				return true
			}
		}
	}
	return false
}
