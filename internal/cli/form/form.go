package form

import (
	"strings"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/visible"
)

// Form describes to a person an answer that a schema demands: its keys and their
// possible values. It helps to type an answer. Only the server checks answers.
type Form struct {
	choices   []string // of the whole answer, as JSON
	typeText  string   // describes its type; "" = any
	sample    string   // an example, as JSON; "" = none is known
	fields    []Field
	cases     []formCase
	element   *Form // of each value of a list that is typed with commas; nil = as JSON
	isUnknown bool  // there is a schema, no part of which is understood
	// isAlternative is set if the schema allows other answers, too.
	isAlternative bool
	// IsClosed is set if an object has no other fields than those of the form.
	IsClosed bool

	// Schema is the schema that the form was read from, "" for none.
	Schema string
}

// Field is one key of an answer that is an object.
type Field struct {
	Form

	Name        string
	Description string // "" = none
	Default     string // JSON, "" = none
	IsRequired  bool
}

// ParseSchema reads a JSON Schema as far as people need it.
func ParseSchema(schema string) Form {
	r := &reader{root: schema, targets: map[string]string{}}
	_, r.hasDialect = jsontext.MembersByKey(schema)["$schema"]
	f := r.parseFormWithin(schema, maxFormDepth)
	f.Schema = schema
	return f
}

// maxFormDepth is the depth to which a schema is read.
const maxFormDepth = 8

// parseFormWithin reads a schema and at most depth - 1 levels of schemas in it.
func (r *reader) parseFormWithin(schema string, depth int) Form {
	schema = r.resolveReference(schema)
	f := Form{Schema: schema}
	if r.parsed += len(schema); r.parsed > maxParsedBytes+8*len(r.root) { // alternatives in alternatives
		f.isUnknown = true
		return f
	}
	parts := jsontext.MembersByKey(schema)
	if depth == 0 || len(parts) == 0 {
		return f
	}
	f.choices = parseChoices(parts)
	f.typeText, f.sample = describeType(parts)
	if parts["type"] == `"array"` {
		element := r.parseFormWithin(parts["items"], depth-1)
		f.sample = sampleList(parts, element)
		if _, ok := parts["prefixItems"]; !ok && element.isWord() {
			f.element = &element
		}
	}
	f.fields = r.parseFormFields(parts, depth)
	f.IsClosed = isClosed(parts)
	if len(f.choices) > 0 || f.typeText != "" || len(f.fields) > 0 {
		f.cases = r.parseFormCases(parts, depth)
		return f
	}
	if parts["type"] == `"object"` {
		f.sample = "{}"
		return f
	}
	if f.choices = r.mergeChoices(parts, depth); len(f.choices) > 0 {
		return f
	}
	for _, one := range listAlternatives(parts) {
		if inner := r.parseFormWithin(one, depth-1); !inner.isUnknown && inner.sampleAnswer() != unknownAnswer {
			inner.Schema, inner.isAlternative = schema, true
			return inner
		}
	}
	f.isUnknown = hasConstraints(parts)
	return f
}

// mergeChoices returns the choices of all alternatives, if all of them are choices.
func (r *reader) mergeChoices(parts map[string]string, depth int) []string {
	var all []string
	for _, word := range []string{"oneOf", "anyOf"} {
		for _, one := range jsontext.SplitArray(parts[word]) {
			inner := r.parseFormWithin(one, depth-1)
			if len(inner.choices) == 0 {
				return nil
			}
			all = append(all, inner.choices...)
		}
	}
	return all
}

// listAlternatives returns the alternative schemas of an answer.
func listAlternatives(parts map[string]string) []string {
	var list []string
	if other := parts["else"]; other != "" {
		list = append(list, other)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf"} {
		list = append(list, jsontext.SplitArray(parts[word])...)
	}
	return list
}

// hasConstraints reports whether a schema has more than descriptions of an answer.
func hasConstraints(parts map[string]string) bool {
	for key := range parts {
		switch key {
		case "$schema", "$id", "$comment", "title", "description", "examples", "default":
		default:
			return true
		}
	}
	return false
}

func (r *reader) parseFormFields(parts map[string]string, depth int) []Field {
	var fields []Field
	required := map[string]bool{}
	for _, name := range jsontext.SplitArray(parts["required"]) {
		required[name] = true
	}
	for _, m := range jsontext.SplitObject(parts["properties"]) {
		inner := jsontext.MembersByKey(m.Value)
		description, _ := jsontext.UnquoteString(inner["description"])
		field := Field{
			Form: r.parseFormWithin(m.Value, depth-1), Name: m.Key, Description: description, Default: inner["default"],
			IsRequired: required[jsontext.QuoteString(m.Key)],
		}
		if !r.isWhole(field.Schema) {
			field.Schema = ""
		}
		fields = append(fields, field)
	}
	return fields
}

func parseChoices(parts map[string]string) []string {
	if one, ok := parts["const"]; ok {
		return []string{jsontext.CompactText(one)}
	}
	if parts["type"] == `"boolean"` {
		return []string{"true", "false"}
	}
	list := jsontext.SplitArray(parts["enum"])
	for i := range list {
		list[i] = jsontext.CompactText(list[i])
	}
	return list
}

// The words for the types that people type in a way of their own.
const (
	textType = "text"
	listType = "list"
)

// describeType returns a description of a type, like "integer from 0 to 15", and an
// example that fits.
func describeType(parts map[string]string) (word, sample string) {
	switch parts["type"] {
	case `"string"`:
		return textType, `"..."`
	case `"array"`:
		return listType, "[]"
	case `"integer"`, `"number"`:
		word = strings.Trim(parts["type"], `"`)
		switch least, most := parts["minimum"], parts["maximum"]; {
		case least != "" && most != "":
			return word + " from " + least + " to " + most, least
		case least != "":
			return word + " from " + least, least
		case most != "":
			return word + " up to " + most, most
		}
		return word, "0"
	}
	return "", ""
}

// DescribeAnswer describes the form in one line; "" when any answer fits.
func (f Form) DescribeAnswer() string {
	if len(f.choices) > 0 {
		return strings.Join(f.choices, " | ")
	}
	if f.isUnknown {
		return "as its schema says, see -o json"
	}
	if f.typeText != "" {
		return f.typeText
	}
	var words []string
	for _, field := range f.fields {
		word := field.Name
		if !field.IsRequired {
			word += "?"
		}
		if len(field.choices) > 0 {
			word += ": " + strings.Join(unquoteAll(field.choices), " | ")
		} else if field.typeText != "" && field.typeText != textType {
			word += ": " + field.typeText
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// ExampleText returns an answer that fits the form as far as it is known, in a form
// that can be pasted.
func (f Form) ExampleText() string { return visible.JSON(f.sampleAnswer()) }

// unknownAnswer is the example when the schema does not determine an answer.
const unknownAnswer = "JSON"

func (f Form) sampleAnswer() string {
	switch {
	case len(f.choices) > 0:
		return f.choices[0]
	case f.sample != "":
		return f.sample
	case f.isUnknown:
		return unknownAnswer
	case len(f.fields) == 0:
		return "true"
	}
	return f.sampleObject()
}

// unquoteAll returns JSON strings without their quotes.
func unquoteAll(list []string) []string {
	words := make([]string, len(list))
	for i, text := range list {
		words[i] = text
		if s, ok := jsontext.UnquoteString(text); ok {
			words[i] = s
		}
	}
	return words
}
