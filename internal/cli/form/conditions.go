package form

import (
	"slices"

	"github.com/graphd-dev/graphd/internal/cli/jsontext"
)

// formCase is what a schema says of an object while a field of it has a value.
type formCase struct {
	field, value string
	then         Form
	// isSole is set if nothing but the value decides.
	isSole   bool
	required []string // names of fields that must be there then
	refused  []string // names of fields that must not be there then
}

// parseFormCases reads the conditions of a schema, each an if that tests values of fields.
func (r *reader) parseFormCases(parts map[string]string, depth int) []formCase {
	cases := r.parseCondition(parts, depth)
	for _, one := range jsontext.SplitArray(parts["allOf"]) {
		cases = append(cases, r.parseCondition(jsontext.MembersByKey(one), depth)...)
	}
	return cases
}

func (r *reader) parseCondition(parts map[string]string, depth int) []formCase {
	var cases []formCase
	var then *formCase
	condition := jsontext.MembersByKey(parts["if"])
	tested := jsontext.SplitObject(condition["properties"])
	for _, m := range tested {
		for _, value := range parseTestedValues(m.Value) {
			if then == nil { // once: there may be many values, on each level
				then = r.parseConsequence(parts["then"], depth)
				then.isSole = len(tested) == 1 && isSoleTest(condition, m)
			}
			c := *then
			c.field, c.value = m.Key, jsontext.CompactText(value)
			cases = append(cases, c)
		}
	}
	return cases
}

// parseTestedValues returns the values for which the test of a field holds, as JSON.
func parseTestedValues(test string) []string {
	parts := jsontext.MembersByKey(test)
	if value, ok := parts["const"]; ok {
		return []string{value}
	}
	return jsontext.SplitArray(parts["enum"])
}

// isSoleTest reports whether a condition tests the values of one field and nothing else.
func isSoleTest(condition map[string]string, test jsontext.Member) bool {
	for _, name := range jsontext.SplitArray(condition["required"]) {
		if name != jsontext.QuoteString(test.Key) {
			return false
		}
	}
	delete(condition, "properties")
	delete(condition, "required")
	parts := jsontext.MembersByKey(test.Value)
	delete(parts, "const")
	if _, ok := jsontext.MembersByKey(test.Value)["const"]; !ok {
		delete(parts, "enum")
	}
	for _, part := range []map[string]string{condition, parts} {
		delete(part, "type")
		if hasConstraints(part) {
			return false
		}
	}
	return true
}

func (r *reader) parseConsequence(then string, depth int) *formCase {
	parts := jsontext.MembersByKey(then)
	c := &formCase{then: r.parseFormWithin(then, depth-1)}
	c.required = unquoteAll(jsontext.SplitArray(parts["required"]))
	for _, m := range jsontext.SplitObject(parts["properties"]) {
		if value := jsontext.CompactText(m.Value); value == "false" || value == `{"not":{}}` {
			c.refused = append(c.refused, m.Key)
		}
	}
	return c
}

// isClosed reports whether an object takes only the properties that the schema lists.
func isClosed(parts map[string]string) bool {
	_, hasPatterns := parts["patternProperties"]
	return parts["additionalProperties"] == "false" && !hasPatterns
}

// Values are the fields of an object that have a value, as compact JSON.
type Values map[string]string

// IsDemanded reports whether a field must be there because of the values of others.
func (f Form) IsDemanded(name string, values Values) bool {
	return f.hasCase(values, func(c formCase) bool { return slices.Contains(c.required, name) })
}

// IsRefused reports whether a field must not be there because of the values of others.
func (f Form) IsRefused(name string, values Values) bool {
	return f.hasCase(values, func(c formCase) bool {
		isLeftOut := c.then.IsClosed && !c.then.hasField(name)
		return c.field != name && (isLeftOut || slices.Contains(c.refused, name))
	})
}

// FormGiven returns the form that the values of others demand of a field that takes any value
// by itself, and false if they demand none.
func (f Form) FormGiven(name string, values Values) (Form, bool) {
	for _, c := range f.cases {
		if field := c.then.FieldNamed(name); c.isSole && values[c.field] == c.value && !field.IsAny() {
			return field.Form, true
		}
	}
	return Form{}, false
}

// IsAdded reports whether one of AddedFields may be there because of the values of others.
func (f Form) IsAdded(name string, values Values) bool {
	return f.hasCase(values, func(c formCase) bool {
		return c.then.hasField(name) || slices.Contains(c.required, name)
	})
}

// hasCase reports whether a condition that holds for some values is of a kind.
func (f Form) hasCase(values Values, is func(formCase) bool) bool {
	return slices.ContainsFunc(f.cases, func(c formCase) bool {
		return c.isSole && values[c.field] == c.value && is(c)
	})
}

// AddedFields returns the fields that conditions add to Fields. One that several conditions
// add takes any value, as far as the form knows, unless they agree.
func (f Form) AddedFields() []Field {
	var added []Field
	add := func(field Field) {
		field.IsRequired = false // it is while the condition holds
		isSame := func(other Field) bool { return other.Name == field.Name }
		at := slices.IndexFunc(added, isSame)
		switch {
		case f.hasField(field.Name):
		case at < 0:
			added = append(added, field)
		case added[at].Schema != field.Schema || added[at].DescribeAnswer() != field.DescribeAnswer():
			added[at] = Field{Name: field.Name}
		}
	}
	for _, c := range f.cases {
		if !c.isSole {
			continue
		}
		for _, field := range c.then.fields {
			if !slices.Contains(c.refused, field.Name) {
				add(field)
			}
		}
		for _, name := range c.required {
			add(c.then.FieldNamed(name))
		}
	}
	return added
}

func (f Form) hasField(name string) bool {
	return slices.ContainsFunc(f.fields, func(field Field) bool { return field.Name == name })
}
