package graph

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// answerSchema returns the schema of answers that decode into a type, nil where its name does not
// tell what that is.
func answerSchema(t reflect.Type) json.RawMessage {
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // of the others JSON may be of several kinds
	case reflect.Bool:
		return json.RawMessage(`{"type":"boolean"}`)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return json.RawMessage(`{"type":"integer"}`)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return json.RawMessage(`{"type":"integer","minimum":0}`)
	case reflect.Float32, reflect.Float64:
		return json.RawMessage(`{"type":"number"}`)
	case reflect.String:
		return json.RawMessage(`{"type":"string"}`)
	case reflect.Struct, reflect.Map:
		return json.RawMessage(`{"type":"object"}`)
	}
	return nil
}
