// Package hostile makes inputs with which a client may try to bring a server down:
// small to send, with unbounded work. Code that takes input from clients is tested
// with them.
package hostile

import (
	"fmt"
	"strings"
)

// Schema is a JSON Schema and a value to check against it.
type Schema struct {
	Name   string
	Schema string
	Value  string
	// WantError is part of the error for the schema, or for the value if
	// FailsOnValue. It is "" when the check ends by itself and must be cheap.
	WantError    string
	FailsOnValue bool
}

// Schemas returns schemas that cost unbounded time or memory without limits.
func Schemas() []Schema {
	const steps, form = "schema-steps", "without going into the value"
	return []Schema{
		{Name: "anyOf doubles", Schema: chainedSchema(40, `{"anyOf":[NEXT,NEXT]}`), Value: `1`, WantError: steps},
		{Name: "allOf doubles", Schema: chainedSchema(40, `{"allOf":[NEXT,NEXT]}`), Value: `1`, WantError: steps},
		{Name: "oneOf doubles below not", Schema: chainedSchema(40, `{"not":{"oneOf":[NEXT,NEXT]}}`), Value: `1`, WantError: steps},
		{Name: "conditions triple", Schema: chainedSchema(30, `{"if":NEXT,"then":NEXT,"else":NEXT}`), Value: `1`, WantError: steps},
		{
			Name: "dependentSchemas double", Schema: chainedSchema(40, `{"dependentSchemas":{"a":NEXT,"b":NEXT}}`),
			Value: `{"a":1,"b":1}`, WantError: steps,
		},
		{
			Name: "dependencies of draft 7 double", Value: `{"a":1,"b":1}`, WantError: steps,
			Schema: strings.Replace(chainedSchema(40, `{"dependencies":{"a":NEXT,"b":NEXT}}`), "{",
				`{"$schema":"http://json-schema.org/draft-07/schema#",`, 1),
		},
		{
			Name: "anyOf doubles deep down", Value: `{"x":[1]}`, WantError: steps,
			Schema: `{"properties":{"x":{"items":` + chainedSchema(40, `{"anyOf":[NEXT,NEXT]}`) + `}}}`,
		},
		{Name: "$ref to itself", Schema: `{"$ref":"#"}`, Value: `1`, WantError: form},
		{
			Name: "two $ref in a circle", Value: `1`, WantError: form,
			Schema: `{"$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`,
		},
		{
			Name: "recursion doubles with depth", Value: Nested(60, `{"a":%s}`, `1`), WantError: steps, FailsOnValue: true,
			Schema: `{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}`,
		},
		{Name: "$dynamicRef", Schema: `{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"}}`, Value: Nested(60, `[%s]`, `1`), WantError: "use $ref"},
		{Name: "$recursiveRef", Schema: `{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,` +
			`"items":{"$recursiveRef":"#"}}`, Value: Nested(60, `[%s]`, `1`), WantError: "use $ref"},
		{Name: "counts in a regular expression", Schema: `{"pattern":"((a{30}){30}){1000}"}`, Value: `"a"`, WantError: "regex"},
		{Name: "counts in many regular expressions", Schema: `{"allOf":[` + joinItems(30, func(int) string { return `{"pattern":"(((a|b)(c|d)){30}){30}"}` }) + `]}`, Value: `"a"`, WantError: "too many or too large"},
		{Name: "a regular expression of classes", Schema: `{"pattern":"` + strings.Repeat(`\\pL`, 1000) + `"}`, Value: `"a"`, WantError: "repeats too much"},
		{Name: "a long regular expression", Schema: `{"pattern":"` + strings.Repeat(`(x+x+)+`, 1000) + `"}`, Value: `"a"`, WantError: "a regular expression has"},
		{
			Name: "a slow regular expression", Schema: `{"pattern":"^((x{1,10}){1,40}y|(x|xx){1,200}z)$"}`,
			Value: `"` + strings.Repeat("x", 500_000) + `"`, WantError: steps, FailsOnValue: true,
		},
		{
			Name: "patternProperties", Value: largeObject(20_000), WantError: steps, FailsOnValue: true,
			Schema: `{"patternProperties":{` + joinItems(200, func(i int) string { return fmt.Sprintf(`"(a|b%d)*c$":{}`, i) }) + `}}`,
		},
		{
			Name: "regular expressions as values", Schema: `{"items":{"format":"regex"}}`, Value: `["((a{30}){30}){1000}"]`,
		},
		{Name: "uniqueItems of lists that hash alike", Schema: `{"uniqueItems":true}`, Value: collidingLists(12_000), WantError: steps, FailsOnValue: true},
		{
			Name: "lists that hash alike in an enum of draft 4", WantError: "a list in the schema", Value: `1`,
			Schema: `{"$schema":"http://json-schema.org/draft-04/schema#","enum":` + collidingLists(2500) + `}`,
		},
		{
			Name: "a huge enum for many values", WantError: steps, FailsOnValue: true, Value: `[` + joinItems(20_000, formatInt) + `]`,
			Schema: `{"items":{"enum":[` + joinItems(20_000, func(i int) string { return fmt.Sprintf(`%d.5`, i) }) + `]}}`,
		},
		{
			Name: "many required names for many objects", WantError: steps, FailsOnValue: true, Value: `[` + joinItems(50_000, func(int) string { return `{}` }) + `]`,
			Schema: `{"items":{"required":[` + joinItems(10_000, func(i int) string { return fmt.Sprintf(`"k%d"`, i) }) + `]}}`,
		},
		{Name: "a reference to the network", Schema: `{"$ref":"http://169.254.169.254/latest"}`, Value: `1`, WantError: "not allowed"},
		{Name: "a reference to a file", Schema: `{"$ref":"file:///etc/passwd"}`, Value: `1`, WantError: "not allowed"},
		{Name: "a dialect from the network", Schema: `{"$schema":"http://example.com/d"}`, Value: `1`, WantError: "not allowed"},
		{Name: "a deep schema", Schema: Nested(2000, `{"not":%s}`, `{}`), Value: `1`, WantError: "nested too deeply"},
		{Name: "a chain of references", Schema: chainedSchema(500, `{"allOf":[NEXT]}`), Value: `1`, WantError: "in a row look at the same value"},
		{
			Name: "very many subschemas", Value: `{}`, WantError: "schema-objects",
			Schema: `{"properties":{` + joinItems(9000, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"null"}`, i) }) + `}}`,
		},
		{Name: "a long schema", Schema: `{"description":"` + strings.Repeat("x", 1<<20) + `"}`, Value: `1`, WantError: "schema-bytes"},
		{Name: "a number of a million digits", Schema: `{"multipleOf":0.7}`, Value: strings.Repeat("7", 1_000_000)},
		{Name: "a bound of many digits", Schema: `{"maximum":` + strings.Repeat("7", 100_000) + `}`, Value: `1`, WantError: "digits"},
		{Name: "everything is wrong", Schema: `{"items":{"type":"string","minLength":3}}`, Value: `[` + joinItems(200_000, formatInt) + `]`},
		{
			Name: "every alternative is wrong", WantError: steps, FailsOnValue: true, Value: `[` + joinItems(100_000, formatInt) + `]`,
			Schema: `{"items":{"anyOf":[` + joinItems(20, func(int) string { return `{"maximum":-1}` }) + `]}}`,
		},
	}
}

// chainedSchema returns a chain of definitions. Each is the format with a reference
// to the definition before in place of NEXT.
func chainedSchema(n int, format string) string {
	var b strings.Builder
	b.WriteString(`{"$id":"urn:chain","$defs":{"d0":{"type":"string"}`)
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `,"d%d":%s`, i, strings.ReplaceAll(format, "NEXT", fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i-1)))
	}
	fmt.Fprintf(&b, `},"allOf":[{"$ref":"#/$defs/d%d"}]}`, n)
	return b.String()
}

// Nested repeats a format with one %s around a text.
func Nested(n int, format, inside string) string {
	before, after, _ := strings.Cut(format, "%s")
	return strings.Repeat(before, n) + inside + strings.Repeat(after, n)
}

func joinItems(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

func formatInt(i int) string { return fmt.Sprint(i) }

func largeObject(n int) string {
	return `{` + joinItems(n, func(i int) string { return fmt.Sprintf(`"a%daaaaaaaaaaaaaaaaaaaa":1`, i) }) + `}`
}

// collidingLists returns different lists of texts that have the same hash. Their
// texts contain the mark that precedes a text when it is hashed.
func collidingLists(n int) string {
	return `[` + joinItems(n, func(i int) string {
		var b strings.Builder
		b.WriteString(`["x`)
		for bit := range 14 {
			if i>>bit&1 == 1 {
				b.WriteString(`","x`)
			} else {
				b.WriteString(`\u0004x`)
			}
		}
		return b.String() + `"]`
	}) + `]`
}
