package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/visible"
)

// form is what a schema of an answer says to a person: which keys there are
// and what may stand in them. It is a help to type, never a check; the server
// checks.
type form struct {
	choices []string // of the whole answer, as JSON
	word    string   // for its type; "" = any
	sample  string   // of it, as JSON; "" = none is known
	fields  []formField
	cases   []formCase
	unknown bool // there is a schema, of which nothing is understood
}

type formField struct {
	form

	name     string
	required bool
}

// formCase is what else is required when a field has a value.
type formCase struct {
	field, value string
	then         form
}

// formOf reads a JSON Schema as far as people need it.
func formOf(schema string) form { return formWithin(schema, mostFormDepth) }

// mostFormDepth is how deep a schema is read.
const mostFormDepth = 8

func formWithin(schema string, depth int) form {
	var f form
	parts := asMap(schema)
	if depth == 0 || len(parts) == 0 {
		return f
	}
	f.choices = choicesOf(schema)
	f.word, f.sample = typeOf(parts)
	if parts["type"] == `"array"` {
		f.sample = listOf(parts, depth)
	}
	f.fields = fieldsWithin(parts, depth)
	if len(f.choices) > 0 || f.word != "" || len(f.fields) > 0 {
		f.cases = casesOf(parts, depth)
		return f
	}
	if parts["type"] == `"object"` {
		f.sample = "{}"
		return f
	}
	for _, one := range alternatives(parts) {
		if inner := formWithin(one, depth-1); !inner.unknown && inner.sampleAnswer() != unknownAnswer {
			return inner
		}
	}
	f.unknown = saysSomething(parts)
	return f
}

// alternatives are schemas of which one holds for an answer that fits.
func alternatives(parts map[string]string) []string {
	var list []string
	if other := parts["else"]; other != "" {
		list = append(list, other)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf"} {
		list = append(list, elements(parts[word])...)
	}
	return list
}

// saysSomething reports whether a schema is more than words about an answer.
func saysSomething(parts map[string]string) bool {
	for key := range parts {
		switch key {
		case "$schema", "$id", "$comment", "title", "description", "examples", "default":
		default:
			return true
		}
	}
	return false
}

func fieldsWithin(parts map[string]string, depth int) []formField {
	var fields []formField
	required := elements(parts["required"])
	for _, m := range members(parts["properties"]) {
		fields = append(fields, formField{
			form: formWithin(m.value, depth-1), name: m.key, required: slices.Contains(required, jsonString(m.key)),
		})
	}
	return fields
}

// casesOf reads an if that asks for one value of one field.
func casesOf(parts map[string]string, depth int) []formCase {
	var cases []formCase
	for _, m := range members(asMap(parts["if"])["properties"]) {
		if value, ok := asMap(m.value)["const"]; ok {
			cases = append(cases, formCase{m.key, Compact(value), formWithin(parts["then"], depth-1)})
		}
	}
	return cases
}

// listOf is a list that is long enough.
func listOf(parts map[string]string, depth int) string {
	least, _ := strconv.Atoi(parts["minItems"]) // 0 for what is no number, too
	one := formWithin(parts["items"], depth-1).sampleAnswer()
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", min(max(least, 0), mostSampleItems)), ",") + "]"
}

const mostSampleItems = 5

func choicesOf(schema string) []string {
	parts := asMap(schema)
	if one, ok := parts["const"]; ok {
		return []string{Compact(one)}
	}
	if parts["type"] == `"boolean"` {
		return []string{"true", "false"}
	}
	list := elements(parts["enum"])
	for i := range list {
		list[i] = Compact(list[i])
	}
	return list
}

// typeOf words what may stand somewhere, like "integer from 0 to 15", and gives
// a value that may.
func typeOf(parts map[string]string) (word, sample string) {
	bounds := ""
	switch parts["type"] {
	case `"string"`:
		return "text", `"..."`
	case `"array"`:
		return "list", "[]"
	case `"integer"`, `"number"`:
		word, sample = strings.Trim(parts["type"], `"`), "0"
		if most := parts["maximum"]; most != "" {
			bounds, sample = " up to "+most, most
		}
		if least := parts["minimum"]; least != "" {
			bounds, sample = " from "+least+strings.Replace(bounds, " up to ", " to ", 1), least
		}
		return word + bounds, sample
	}
	return "", ""
}

func asMap(text string) map[string]string {
	parts := make(map[string]string)
	for _, m := range members(text) {
		parts[m.key] = m.value
	}
	return parts
}

// describe words the form on one line; "" when anything goes.
func (f form) describe() string {
	if len(f.choices) > 0 {
		return strings.Join(f.choices, " | ")
	}
	if f.unknown {
		return "as its schema says, see -o json"
	}
	if f.word != "" {
		return f.word
	}
	var words []string
	for _, field := range f.fields {
		word := field.name
		if !field.required {
			word += "?"
		}
		if len(field.choices) > 0 {
			word += ": " + strings.Join(bare(field.choices), " | ")
		} else if field.word != "" && field.word != "text" {
			word += ": " + field.word
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// example is an answer that fits the form as far as it is known, which can be
// pasted.
func (f form) example() string { return visible.JSON(f.sampleAnswer()) }

// ask is what stands before the place to type.
func (f form) ask() string {
	if f.unknown {
		return "answer (JSON)> "
	}
	return "answer (JSON, like " + f.example() + ")> "
}

// unknownAnswer stands where the schema does not tell what fits.
const unknownAnswer = "JSON"

func (f form) sampleAnswer() string {
	switch {
	case len(f.choices) > 0:
		return f.choices[0]
	case f.sample != "":
		return f.sample
	case f.unknown:
		return unknownAnswer
	case len(f.fields) == 0:
		return "true"
	}
	return f.sampleObject()
}

// sampleObject has what is required, with choices that require nothing more if
// there are such.
func (f form) sampleObject() string {
	w := &writer{}
	w.b.WriteByte('{')
	var more []formField
	for _, field := range f.fields {
		if !field.required {
			continue
		}
		value, then := f.sampleOf(field)
		more = append(more, then...)
		w.sampleField(field.name, value)
	}
	for _, field := range more {
		if field.required && !slices.ContainsFunc(f.fields, func(o formField) bool { return o.required && o.name == field.name }) {
			w.sampleField(field.name, field.sampleAnswer())
		}
	}
	w.b.WriteByte('}')
	return w.b.String()
}

// sampleOf is a value of a field, and the fields that it makes required.
func (f form) sampleOf(field formField) (value string, then []formField) {
	if field.word == "" && len(field.choices) == 0 && len(field.fields) == 0 && field.sample == "" {
		return `"..."`, nil
	}
	held := func(value string) []formField {
		for _, c := range f.cases {
			if c.field == field.name && c.value == value {
				return c.then.fields
			}
		}
		return nil
	}
	for _, value := range field.choices {
		if held(value) == nil {
			return value, nil
		}
	}
	value = field.sampleAnswer()
	return value, held(value)
}

func (w *writer) sampleField(name, value string) {
	if w.b.Len() > 1 {
		w.b.WriteByte(',')
	}
	w.text(name)
	w.b.WriteByte(':')
	w.b.WriteString(value)
}

// complete turns what a person typed into JSON: JSON stays, and a bare word
// that is a choice becomes the answer it stands for.
func (f form) complete(typed string) (string, error) {
	err := checkJSON(typed)
	if err == nil {
		return typed, nil
	}
	word := jsonString(typed)
	if slices.Contains(f.choices, word) {
		return word, nil
	}
	for _, field := range f.fields {
		if field.required && slices.Contains(field.choices, word) {
			return "{" + jsonString(field.name) + ":" + word + "}", nil
		}
	}
	return "", err
}

// bare shows JSON strings without their quotes.
func bare(list []string) []string {
	words := make([]string, len(list))
	for i, text := range list {
		words[i] = text
		if s, ok := plainText(text); ok {
			words[i] = s
		}
	}
	return words
}
