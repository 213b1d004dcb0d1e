package graph

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// jsonField is a field of a struct as JSON has it.
type jsonField struct {
	reflect.StructField

	name    string
	options string // behind the name in the tag, like "omitempty"
}

// jsonFields returns the fields of a struct as JSON has them: those of embedded structs stand for
// themselves, behind the others, and a field hides those of its name that are embedded deeper.
func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	known := make(map[string]bool)
	seen := map[reflect.Type]bool{t: true}
	for level := []reflect.Type{t}; len(level) > 0; {
		var deeper []reflect.Type
		var found []jsonField
		for _, of := range level {
			for f := range of.Fields() {
				name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
				if embedded := elementOf(f.Type); f.Anonymous && name == "" && embedded.Kind() == reflect.Struct && !decodesItself(embedded) {
					if !seen[embedded] {
						seen[embedded] = true
						deeper = append(deeper, embedded)
					}
					continue
				}
				if !f.IsExported() || f.Tag.Get("json") == "-" {
					continue
				}
				if name == "" {
					name = f.Name
				}
				if !known[name] {
					found = append(found, jsonField{f, name, options})
				}
			}
		}
		for _, f := range found {
			known[f.name] = true
		}
		fields, level = append(fields, found...), deeper
	}
	return fields
}

// elementOf returns what a type points to.
func elementOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// decodesItself reports whether a type reads JSON in a way of its own.
func decodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
