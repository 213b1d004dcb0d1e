package schema_test

import (
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/schema"
	"github.com/graphd-dev/graphd/internal/testkit/hostile"
)

// All callers share the memory that a hostile schema takes, garbage included.
func TestHostileSchemas(t *testing.T) {
	for _, h := range hostile.Schemas() {
		t.Run(h.Name, func(t *testing.T) {
			c := schema.New(schema.Limits{})
			before := allocatedBytes()
			compileErr := c.CheckSchema(payload.JSON(h.Schema))
			found, err := c.Check(t.Context(), payload.JSON(h.Schema), payload.JSON(h.Value))
			require.Less(t, allocatedBytes()-before, uint64(300<<20), "bytes")
			if h.WantError == "" {
				require.NoError(t, err)
				require.NotEmpty(t, found)
				require.LessOrEqual(t, len(found), 101)
				require.Less(t, len(fmt.Sprint(found)), 64<<10)
				return
			}
			require.ErrorContains(t, err, h.WantError)
			require.Empty(t, found)
			if h.FailsOnValue {
				require.NoError(t, compileErr)
				require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonSchemaLimitExceeded})
				return
			}
			require.ErrorContains(t, compileErr, h.WantError)
		})
	}
}

func allocatedBytes() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Limits must admit the schemas that people write.
func TestLargeHonestSchemas(t *testing.T) {
	tree := payload.JSON(`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
		"children":{"type":"array","items":{"$ref":"#"}}}}`)
	leaves := strings.Repeat(`{"name":"leaf"},`, 5000)
	object := payload.JSON(`{"type":"object","properties":{"id":{"type":"integer"},"mail":{"type":"string","format":"email"},
		"role":{"enum":["a","b","c"]},"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}}}`)
	objects := strings.Repeat(`{"id":17,"mail":"a@b.c","role":"b","tags":["x","y"]},`, 5000)
	definitions := make([]string, 300)
	for i := range definitions {
		definitions[i] = fmt.Sprintf(`"d%d":{"title":"T","type":"object","properties":{"a":{"type":"string"},`+
			`"b":{"anyOf":[{"$ref":"#/$defs/d%d"},{"type":"null"}],"default":null}}}`, i, (i+1)%300)
	}
	for name, c := range map[string]struct{ schema, value payload.JSON }{
		"a tree":       {tree, payload.JSON(`{"name":"root","children":[` + leaves + `{"name":"last"}]}`)},
		"many objects": {`{"items":` + object + `}`, payload.JSON(`[` + objects + `{"id":1}]`)},
		"definitions in a circle": {
			payload.JSON(`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(definitions, ",") + `}}`),
			payload.JSON(hostile.Nested(80, `{"a":"x","b":%s}`, `null`)),
		},
		"a date":                {`{"pattern":"^\\d{4}-\\d{2}-\\d{2}$","maxLength":10}`, `"2026-11-22"`},
		"a long text":           {`{"type":"string","pattern":"^[^<>]*$"}`, payload.JSON(`"` + strings.Repeat("x", 200_000) + `"`)},
		"the schema of schemas": {`{"$ref":"http://json-schema.org/draft-07/schema#"}`, object},
		"dependent":             {`{"dependentSchemas":{"a":{"required":["b"]}},"unevaluatedProperties":false,"properties":{"a":{},"b":{}}}`, `{"a":1,"b":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			checker := schema.New(schema.Limits{})
			require.NoError(t, checker.CheckSchema(c.schema))
			found, err := checker.Check(t.Context(), c.schema, c.value)
			require.NoError(t, err)
			require.Empty(t, found)
		})
	}
}

func TestSchemaLimitsAreSet(t *testing.T) {
	for says, limits := range map[string]schema.Limits{
		"max-schema-bytes": {Bytes: 10}, "max-schema-objects": {Objects: 2}, "max-schema-steps": {Steps: 10},
	} {
		err := schema.New(limits).CheckSchema(`{"properties":{"a":{"type":"null"},"b":{"anyOf":[{},{"type":"null"}]}}}`)
		var limit *schema.LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, says, limit.Limit)
	}
}

// A few characters are a number that no machine can write out. It is checked or
// refused, reported in its short form, and costs next to nothing.
func TestNumbersBeyondAnyRange(t *testing.T) {
	c := schema.New(schema.Limits{})
	check := func(definition, value string) string {
		before := allocatedBytes()
		found, err := c.Check(t.Context(), payload.JSON(definition), payload.JSON(value))
		require.Less(t, allocatedBytes()-before, uint64(8<<20), "bytes")
		return fmt.Sprint(found, err)
	}
	for value, says := range map[string]string{
		"1e400": "1e400 is more than 5", "-1e400": "-1e400 is less than 1", "15e-400": "15e-400 is less than 1",
		"1e1000000": "has an exponent that is too large to check", "1e-999999999": "has an exponent that is too large to check",
		"1e99999999999999999999999": "has an exponent that is too large to check",
	} {
		require.Contains(t, check(`{"type":"number","minimum":1,"maximum":5}`, value), says)
		require.Contains(t, check(`{"type":"array","items":{"minimum":1,"maximum":5}}`, "["+value+"]"), says)
	}
	for _, number := range []string{"1e1000000", "1e-999999999", "1e99999999999999999999999"} {
		for _, word := range []string{"minimum", "maximum", "multipleOf", "const", "exclusiveMinimum"} {
			text := check(`{"`+word+`":`+number+`}`, "3")
			require.Less(t, len(text), 500, "%s %s", word, number)
		}
	}
	require.NotEqual(t, "[] <nil>", check(`{"const":1e400}`, "1e401"))
	require.Equal(t, "[] <nil>", check(`{"const":1e400}`, "10e399"))
}
