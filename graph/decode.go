package graph

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
)

// decodeJSON reads JSON text into v. Numbers that land in an any are json.Number.
func decodeJSON(text []byte, v any) error { return newDecoder(reflect.TypeOf(v))(text, v) }

// jsonDecoder is decodeJSON for values of one type.
type jsonDecoder func(text []byte, v any) error

// newDecoder returns the decoder for a type. One that holds no any needs no buffers.
func newDecoder(t reflect.Type) jsonDecoder {
	if !mayHoldAny(t, nil) {
		return json.Unmarshal
	}
	return func(text []byte, v any) error {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		return d.Decode(v)
	}
}

// mayHoldAny reports whether values of a type may hold an any. around are the types in which it was
// found.
func mayHoldAny(t reflect.Type, around []reflect.Type) bool {
	if t == nil || slices.Contains(around, t) {
		return false
	}
	kind := t.Kind()
	if kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Array || kind == reflect.Map {
		return mayHoldAny(t.Elem(), append(around, t))
	}
	if kind == reflect.Struct {
		for field := range t.Fields() {
			if mayHoldAny(field.Type, append(around, t)) {
				return true
			}
		}
	}
	return kind == reflect.Interface
}
