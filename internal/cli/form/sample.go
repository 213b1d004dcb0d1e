package form

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// sampleObject returns an object with the required fields. It chooses values that
// make no further fields required, if there are such.
func (f Form) sampleObject() string {
	var list []jsontext.Member
	var more []Field
	for _, field := range f.fields {
		if !field.IsRequired {
			continue
		}
		value, then := f.fieldSample(field)
		more = append(more, then...)
		list = append(list, jsontext.Member{Key: field.Name, Value: value})
	}
	for _, field := range more {
		isThere := func(m jsontext.Member) bool { return m.Key == field.Name }
		if !slices.ContainsFunc(list, isThere) {
			list = append(list, jsontext.Member{Key: field.Name, Value: field.sampleAnswer()})
		}
	}
	return jsontext.JoinObject(list)
}

// fieldSample returns an example of a field, and the fields that it makes required.
func (f Form) fieldSample(field Field) (value string, then []Field) {
	if field.IsAny() {
		return `"..."`, nil
	}
	for _, value := range field.choices {
		if len(f.fieldsDemandedBy(field.Name, value)) == 0 {
			return value, nil
		}
	}
	value = field.sampleAnswer()
	return value, f.fieldsDemandedBy(field.Name, value)
}

// fieldsDemandedBy returns the fields that may be required when a field has a value.
func (f Form) fieldsDemandedBy(name, value string) []Field {
	var demanded []Field
	for _, c := range f.cases {
		if c.field != name || c.value != value {
			continue
		}
		for _, name := range c.required {
			field := c.then.FieldNamed(name)
			if field.IsAny() {
				field = f.FieldNamed(name)
			}
			demanded = append(demanded, field)
		}
	}
	return demanded
}
