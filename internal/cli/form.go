package cli

import (
	"slices"
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
}

type formField struct {
	name     string
	required bool
	choices  []string // as JSON; nil = anything
	word     string
	sample   string
}

// formOf reads a JSON Schema as far as people need it.
func formOf(schema string) form {
	var f form
	parts := asMap(schema)
	f.choices = choicesOf(schema)
	f.word, f.sample = typeOf(parts)
	required := elements(parts["required"])
	for _, m := range members(parts["properties"]) {
		name := jsonString(m.key)
		field := formField{name: m.key, required: slices.Contains(required, name), choices: choicesOf(m.value)}
		field.word, field.sample = typeOf(asMap(m.value))
		f.fields = append(f.fields, field)
	}
	return f
}

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

func (f form) sampleAnswer() string {
	if len(f.choices) > 0 {
		return f.choices[0]
	}
	if f.sample != "" {
		return f.sample
	}
	if len(f.fields) == 0 {
		return "true"
	}
	w := &writer{}
	w.b.WriteByte('{')
	for _, field := range f.fields {
		if !field.required {
			continue
		}
		if w.b.Len() > 1 {
			w.b.WriteByte(',')
		}
		w.text(field.name)
		w.b.WriteByte(':')
		switch {
		case len(field.choices) > 0:
			w.b.WriteString(field.choices[0])
		case field.sample != "":
			w.b.WriteString(field.sample)
		default:
			w.b.WriteString(`"..."`)
		}
	}
	w.b.WriteByte('}')
	return w.b.String()
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
