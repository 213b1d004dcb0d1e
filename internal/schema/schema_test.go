package schema_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/schema"
)

const decisionSchema payload.JSON = `{
	"type": "object", "required": ["decision", "by"], "additionalProperties": false,
	"properties": {
		"decision": {"enum": ["approved", "rejected"]}, "by": {"$ref": "#/$defs/who"},
		"a/b~c": {"type": "array", "items": {"type": "integer", "maximum": 9007199254740993}}
	},
	"$defs": {"who": {"type": "string", "minLength": 2, "format": "email"}}
}`

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		schema, value payload.JSON
		want          []runtime.Violation
	}{
		"fits":              {decisionSchema, `{"decision":"approved","by":"a@b.c"}`, nil},
		"true fits all":     {`true`, `17`, nil},
		"empty fits all":    {`{}`, `null`, nil},
		"false fits none":   {`false`, `17`, []runtime.Violation{{Description: "false schema"}}},
		"another type":      {decisionSchema, `"yes"`, []runtime.Violation{{Description: "got string, want object"}}},
		"null is no object": {decisionSchema, `null`, []runtime.Violation{{Description: "got null, want object"}}},
		"not JSON":          {`{}`, `{`, []runtime.Violation{{Description: "is not JSON: unexpected EOF"}}},
		"no text":           {`{}`, `"yes`, []runtime.Violation{{Description: "is not JSON: unexpected end of JSON input"}}},
		"a text fits":       {`{"enum":["yes"]}`, `"yes"`, nil},
		"true fits":         {`{"const":true}`, `true`, nil},
		"a large number": {
			decisionSchema, `{"decision":"approved","by":"a@b.c","a/b~c":[9007199254740993,9007199254740994,1.5]}`,
			[]runtime.Violation{
				{Field: "/a~1b~0c/1", Description: "9007199254740994 is more than 9007199254740993"},
				{Field: "/a~1b~0c/2", Description: "got number, want integer"},
			},
		},
		"all at once": {
			decisionSchema, `{"decision":"maybe","x":1,"y":2}`,
			[]runtime.Violation{
				{Field: "/by", Description: "is missing"},
				{Field: "/decision", Description: "value must be one of 'approved', 'rejected'"},
				{Field: "/x", Description: "is not allowed here"},
				{Field: "/y", Description: "is not allowed here"},
			},
		},
		"none of the alternatives": {
			`{"anyOf":[{"type":"string"},{"properties":{"x":{"type":"null"}}}]}`, `{"x":1}`,
			[]runtime.Violation{{Description: "fits none of the alternatives: got object, want string, or /x got number, want null"}},
		},
		"too many alternatives": {
			`{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`,
			[]runtime.Violation{{Description: "fits more than one of the alternatives"}},
		},
		"bounds": {
			`{"items":{"minimum":0.1,"exclusiveMaximum":10,"multipleOf":0.3}}`, `[-0.25,10,0.30]`,
			[]runtime.Violation{
				{Field: "/0", Description: "-0.25 is less than 0.1"},
				{Field: "/0", Description: "-0.25 is no multiple of 0.3"},
				{Field: "/1", Description: "10 is not less than 10"},
				{Field: "/1", Description: "10 is no multiple of 0.3"},
			},
		},
		"numbers beyond all numbers": {
			`{"maximum":5}`, `{"a":[1e999999999, 1E-1001, 1e5, -1e99999999999999999999]}`,
			[]runtime.Violation{
				{Field: "/a/0", Description: "has an exponent that is too large to check; 1000 is the limit"},
				{Field: "/a/1", Description: "has an exponent that is too large to check; 1000 is the limit"},
				{Field: "/a/3", Description: "has an exponent that is too large to check; 1000 is the limit"},
			},
		},
		"excluded": {`{"not":{"type":"string"}}`, `""`, []runtime.Violation{{Description: "is what the schema excludes"}}},
		"conditions": {
			`{"if":{"properties":{"d":{"const":"c"}}},"then":{"required":["conditions"]}}`, `{"d":"c"}`,
			[]runtime.Violation{{Field: "/conditions", Description: "is missing"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := schema.New(schema.Limits{}).Check(t.Context(), c.schema, c.value)
			require.NoError(t, err)
			require.ElementsMatch(t, c.want, got)
		})
	}
}

func TestCheckValue(t *testing.T) {
	c := schema.New(schema.Limits{})
	require.NoError(t, c.CheckValue(`{"type":"string"}`, `"x"`))
	require.EqualError(t, c.CheckValue(`{"required":["a"],"properties":{"b":{"type":"null"}}}`, `{"b":1}`), "/a is missing; /b got number, want null")
	require.Error(t, c.CheckValue(`{"type":"text"}`, `"x"`))
}

func TestBrokenSchemas(t *testing.T) {
	for broken, says := range map[payload.JSON]string{
		`{`:                                  "not JSON",
		`17`:                                 "got number, want",
		`{"type":"text"}`:                    "/type",
		`{"minLength":-1,"required":"a"}`:    "/required got string, want array",
		`{"$ref":"#/$defs/nobody"}`:          "nobody",
		`{"$ref":"http://example.com/s"}`:    `reference to "http://example.com/s" is not allowed`,
		`{"$ref":"file:///etc/passwd"}`:      `reference to "file:///etc/passwd" is not allowed`,
		`{"$ref":"other.json"}`:              `reference to "other.json" is not allowed`,
		`{"$schema":"http://example.com/d"}`: "not allowed",
		`{"maximum":1e99999}`:                "/maximum has an exponent",
		`{"pattern":"("}`:                    "regex",
	} {
		c := schema.New(schema.Limits{})
		err := c.CheckSchema(broken)
		require.ErrorContains(t, err, says, "%s", broken)
		require.NotContains(t, err.Error(), "graphd:schema")
		_, err = c.Check(t.Context(), broken, "1")
		require.Error(t, err)
	}
	require.NoError(t, schema.New(schema.Limits{}).CheckSchema(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}`))
	require.NoError(t, schema.New(schema.Limits{}).CheckSchema(`{"properties":{"a":{"$ref":"#"}}}`))
}

func TestFewSchemasAreKept(t *testing.T) {
	c := schema.New(schema.Limits{CacheBytes: 4000})
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 50 {
				s := payload.JSON(fmt.Sprintf(`{"const":%d}`, i%5))
				got, err := c.Check(t.Context(), s, payload.JSON(fmt.Sprint(i%5)))
				if err != nil || got != nil {
					t.Errorf("worker %d: %v %v", worker, got, err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkCheck(b *testing.B) {
	c := schema.New(schema.Limits{})
	b.ReportAllocs()
	for b.Loop() {
		if got, err := c.Check(b.Context(), decisionSchema, `{"decision":"approved","by":"a@b.c"}`); err != nil || got != nil {
			b.Fatal(got, err)
		}
	}
}
