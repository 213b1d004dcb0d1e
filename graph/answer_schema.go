package graph

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// answerSchema returns the schema of answers that decode into a type, nil where its kind does not
// tell what that is. A strict one has the fields of the type, and refuses others. One that is not
// strict has none, so that a question stays what it is when its type gets a field.
func answerSchema(t reflect.Type, isStrict bool) json.RawMessage {
	schema := new(schemaWriter).schemaOf(t)
	if schema == nil {
		return nil
	}
	if !isStrict {
		switch t.Kind() { //nolint:exhaustive // others have no parts
		case reflect.Pointer, reflect.Slice, reflect.Array:
			return nil // null fits as well
		case reflect.Struct, reflect.Map:
			schema = &typeSchema{Type: "object"}
		}
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	return text
}

// schemaWriter makes schemas of types.
type schemaWriter struct {
	within []reflect.Type // a struct inside itself has no schema of its own
}

// typeSchema is a JSON Schema.
type typeSchema struct {
	Type                 any             `json:"type,omitempty"` // a name, or a list of them
	Minimum              *int            `json:"minimum,omitempty"`
	Items                *typeSchema     `json:"items,omitempty"`
	Properties           orderedSchemas  `json:"properties,omitempty"`
	AdditionalProperties json.RawMessage `json:"additionalProperties,omitempty"`
}

// schemaOf returns the schema of JSON that decodes into a type, nil = any.
func (w *schemaWriter) schemaOf(t reflect.Type) *typeSchema {
	switch {
	case t == reflect.TypeFor[json.Number]():
		return &typeSchema{Type: "number"}
	case decodesItself(t):
		return nil
	}
	switch t.Kind() { //nolint:exhaustive // others decode from no JSON, or from any
	case reflect.Bool:
		return &typeSchema{Type: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &typeSchema{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &typeSchema{Type: "integer", Minimum: new(int)}
	case reflect.Float32, reflect.Float64:
		return &typeSchema{Type: "number"}
	case reflect.String:
		return &typeSchema{Type: "string"}
	case reflect.Slice, reflect.Array:
		return w.listSchema(t)
	case reflect.Map:
		s := &typeSchema{Type: "object"}
		if of := w.schemaOf(t.Elem()); of != nil {
			s.AdditionalProperties, _ = json.Marshal(of) //nolint:errchkjson // it is made of names alone
		}
		return s
	case reflect.Struct:
		return w.structSchema(t)
	case reflect.Pointer:
		return allowNull(w.schemaOf(t.Elem()))
	}
	return nil
}

func (w *schemaWriter) listSchema(t reflect.Type) *typeSchema {
	s := &typeSchema{Type: "array"}
	if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
		s.Type = "string" // in base64
	} else {
		s.Items = w.schemaOf(t.Elem())
	}
	if t.Kind() == reflect.Array {
		return s
	}
	return allowNull(s)
}

func (w *schemaWriter) structSchema(t reflect.Type) *typeSchema {
	s := &typeSchema{Type: "object"}
	if slices.Contains(w.within, t) {
		return s
	}
	w.within = append(w.within, t)
	defer func() { w.within = w.within[:len(w.within)-1] }()
	for _, f := range jsonFields(t) {
		of := w.schemaOf(f.Type)
		if of == nil || slices.Contains(strings.Split(f.options, ","), "string") {
			of = &typeSchema{}
		}
		if f.Type.Kind() == reflect.Map {
			of = allowNull(of)
		}
		s.Properties = append(s.Properties, namedSchema{f.name, of})
	}
	s.AdditionalProperties = json.RawMessage("false")
	return s
}

// allowNull returns a schema that null fits as well, as Go writes empty lists and pointers.
func allowNull(s *typeSchema) *typeSchema {
	if s == nil {
		return nil
	}
	if name, ok := s.Type.(string); ok {
		s.Type = []string{name, "null"}
	}
	return s
}

// orderedSchemas are the properties of an object in the order of its fields, for forms.
type orderedSchemas []namedSchema

type namedSchema struct {
	name   string
	schema *typeSchema
}

// MarshalJSON writes an object.
func (s orderedSchemas) MarshalJSON() ([]byte, error) {
	text := []byte("{")
	for i, property := range s {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(property.name)
		if err != nil {
			return nil, err
		}
		schema, err := json.Marshal(property.schema)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), schema...)
	}
	return append(text, '}'), nil
}
