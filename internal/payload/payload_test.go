package payload_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

func TestValidateAccepts(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, ` false `, `0`, `-0`, `-1.5e+10`, `1e400`, `9007199254740993`, `""`, `"é退款😀"`,
		`"\u00e9\ud83d\ude00\\\"\/\b\f\n\r\t"`, `[]`, `[ ]`, `{}`, `{ }`, `[1,[2,[3]]]`,
		`{"a":1,"b":{"c":1,"a":{"c":2,"b":2}},"c":[{"a":1},{"a":1}]}`, "\t{\n\"a\" : 1 }\r\n", `[{"a":1},{"a":1}]`, `"\ud800"`,
	} {
		require.NoError(t, payload.Validate(text, payload.Limits{}), text)
		require.True(t, json.Valid([]byte(text)), text)
	}
}

func TestValidateRefuses(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = `"k` + strconv.Itoa(i) + `":1`
	}
	tests := map[string]struct {
		text    string
		offset  int
		problem string
	}{
		"nothing":                   {``, 0, "a value is missing"},
		"space":                     {`  `, 2, "a value is missing"},
		"text after":                {`1 2`, 2, "text after the value"},
		"word":                      {`nul`, 0, "expected null"},
		"bare word":                 {`hello`, 0, "a value cannot begin like this"},
		"leading zero":              {`01`, 0, "a number cannot begin with 0"},
		"minus only":                {`-`, 1, "expected a digit"},
		"no fraction":               {`1.`, 2, "expected a digit after the decimal point"},
		"no exponent":               {`1e+`, 3, "expected a digit in the exponent"},
		"open string":               {`"abc`, 0, "string without an end"},
		"control character":         {"\"a\nb\"", 2, "control character in a string"},
		"escape":                    {`"\x"`, 1, "unknown escape in a string"},
		"short escape":              {`"\u12"`, 1, "unknown escape in a string"},
		"comma at the end":          {`[1,]`, 3, "a value cannot begin like this"},
		"open array":                {`[1`, 2, "expected , or ] in an array"},
		"open object":               {`{"a":1`, 6, "expected , or } in an object"},
		"number as key":             {`{1:2}`, 1, "expected a key in double quotes"},
		"no colon":                  {`{"a" 1}`, 5, "expected : after a key"},
		"comma in object":           {`{"a":1,}`, 7, "expected a key in double quotes"},
		"wrong bracket":             {`[1}`, 2, "expected , or ] in an array"},
		"not UTF-8":                 {"\"a\xff\"", 2, "invalid UTF-8"},
		"repeated key":              {`{"a":1, "a":2}`, 8, `key "a" appears twice`},
		"repeated below":            {`{"a":[0,{"b/c":{"k":1,"k":2}}]}`, 22, `key "k" appears twice, at /a/1/b~1c/k`},
		"repeated in a list":        {`[{"a":1},{"a":1,"a":1}]`, 16, `key "a" appears twice, at /1/a`},
		"repeated below many":       {`{"deep":{` + strings.Join(many, ",") + `,"k3":1}}`, 319, `key "k3" appears twice, at /deep/k3`},
		"repeated in disguise":      {`{"a":1,"\u0061":2}`, 7, `key "\u0061" appears twice`},
		"repeated after many":       {`{` + strings.Join(many, ",") + `,"k3":1}`, 311, `key "k3" appears twice`},
		"repeated behind escapes":   {`{"a":1,"\u0062":2,"a":3}`, 18, `key "a" appears twice`},
		"repeated in two disguises": {`{"\u0061":1,"\u0061":2}`, 12, `key "\u0061" appears twice`},
		"repeated behind many open": {
			strings.Repeat(`{"a":1,"b":`, 80) + `{"k":1,"k":2}` + strings.Repeat("}", 80), 887,
			`key "k" appears twice, at ` + strings.Repeat("/b", 80) + "/k",
		},
		"repeated outside of many open": {
			`{"a":` + strings.Repeat(`{"a":1,"b":`, 80) + "1" + strings.Repeat("}", 80) + `,"a":1}`, 967,
			`key "a" appears twice`,
		},
		"repeated among the few": {`{"k":1,"l":{},"k":[]}`, 14, `key "k" appears twice`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := payload.Validate(test.text, payload.Limits{})
			var syntax *payload.SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.Equal(t, payload.SyntaxError{Offset: test.offset, Problem: test.problem}, *syntax)
		})
	}
}

func TestValidateLimits(t *testing.T) {
	var limit *payload.LimitError
	require.ErrorAs(t, payload.Validate(`"1234"`, payload.Limits{MaxBytes: 5}), &limit)
	require.Equal(t, payload.LimitError{Limit: "bytes", Max: 5, Got: 6}, *limit)
	require.NoError(t, payload.Validate(`"1234"`, payload.Limits{MaxBytes: 6}))

	require.NoError(t, payload.Validate(`[{"a":[]}]`, payload.Limits{MaxDepth: 3}))
	for _, text := range []string{`[{"a":[[]]}]`, `{"a":{"b":[{}]}}`} {
		require.ErrorAs(t, payload.Validate(text, payload.Limits{MaxDepth: 3}), &limit)
		require.Equal(t, "depth", limit.Limit)
		require.Equal(t, 3, limit.Max)
	}
	deep := strings.Repeat("[", 1_000_000)
	require.ErrorAs(t, payload.Validate(deep, payload.Limits{}), &limit)
	_, err := payload.Elements(payload.JSON(deep))
	require.ErrorAs(t, err, &limit)
}

func TestValidateDoesNotAllocate(t *testing.T) {
	for _, text := range []string{
		`{"a":[1,2,{"b":"c"}],"d":"é","e":-1.5e3,"f":{"x":{"y":null}}}`,
		newObjectText(64, func(int) string { return "1" }),
		newArrayText(10, newObjectText(60, func(int) string { return `{"a":1,"b":2,"c":3}` })),
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if payload.Validate(text, payload.Limits{MaxBytes: 1 << 20, MaxDepth: 10}) != nil {
				t.Fail()
			}
		}), text)
	}
}

// TestValidateCarriesRepeats lets through what an earlier version has stored.
func TestValidateCarriesRepeats(t *testing.T) {
	stored := payload.Limits{RepeatedKeys: payload.AllowRepeatedKeysBelowRoot}
	for _, text := range []string{`{"a":{"k":1,"k":2}}`, `[{"k":1,"k":2}]`, `{"a":[{"b":{"k":1,"k":2}}]}`} {
		require.Error(t, payload.Validate(text, payload.Limits{}), text)
		require.NoError(t, payload.Validate(text, stored), text)
	}
	require.EqualError(t, payload.Validate(`{"k":1,"k":2}`, stored), `not JSON: key "k" appears twice (at byte 7)`)
	require.Error(t, payload.Validate(`{"k":{"a":1,}}`, stored))
	require.Error(t, payload.Validate(`[{"a":1}`, stored))
	require.NoError(t, payload.Validate(`{"k":1,"k":2}`, payload.Limits{RepeatedKeys: payload.AllowRepeatedKeys}))
}

func TestSplitAndJoin(t *testing.T) {
	const text = ` { "b" : 9007199254740993 , "a\u0062" : [ 1.0, {"x":1} ] ,"n":null, "b":1e400 } `
	fields, err := payload.Fields(text)
	require.NoError(t, err)
	require.Equal(t, []payload.Field{
		{Key: "b", Value: "9007199254740993"},
		{Key: "ab", Value: `[ 1.0, {"x":1} ]`},
		{Key: "n", Value: "null"},
		{Key: "b", Value: "1e400"},
	}, fields)
	require.Equal(t, payload.JSON(`{"b":9007199254740993,"ab":[ 1.0, {"x":1} ],"n":null,"b":1e400}`), payload.Object(fields)) //nolint:testifylint // the text counts
	items, err := payload.Elements(fields[1].Value)
	require.NoError(t, err)
	require.Equal(t, []payload.JSON{"1.0", `{"x":1}`}, items)
	require.Equal(t, payload.JSON(`[1.0,{"x":1}]`), payload.Array(items))
	require.Equal(t, payload.JSON("[]"), payload.Array(nil))
	require.Equal(t, payload.JSON("{}"), payload.Object(nil))

	value, ok := payload.Lookup(text, "b")
	require.True(t, ok)
	require.Equal(t, payload.JSON("1e400"), value, "the last of a repeated key")
	_, ok = payload.Lookup(text, "z")
	require.False(t, ok)
	_, ok = payload.Lookup(`[1]`, "z")
	require.False(t, ok)
}

func TestSplitRefuses(t *testing.T) {
	_, err := payload.Fields("[1]")
	require.ErrorAs(t, err, new(*payload.KindError))
	require.EqualError(t, err, "expected object, got array")
	_, err = payload.Elements("{}")
	require.EqualError(t, err, "expected array, got object")
	_, err = payload.Elements("")
	require.EqualError(t, err, "expected array, got nothing")
	for _, text := range []payload.JSON{`{"a"}`, `{"a":1} x`, `{"a":1`, `{} x`, `{"a":tru}`, `{x`} {
		_, err := payload.Fields(text)
		require.ErrorAs(t, err, new(*payload.SyntaxError), string(text))
	}
	for _, text := range []payload.JSON{`[1`, `[1] x`, `[] x`, `[1,]`, `[`} {
		_, err := payload.Elements(text)
		require.ErrorAs(t, err, new(*payload.SyntaxError), string(text))
	}
}

func TestQuote(t *testing.T) {
	for _, text := range []string{"", "plain", "q\"b\\", "\n\r\t\x00\x1f", "é退款😀", "<&>\u2028"} {
		quoted := payload.Quote(text)
		require.NoError(t, payload.Validate(string(quoted), payload.Limits{}))
		back, err := payload.Unquote(" " + quoted + " ")
		require.NoError(t, err)
		require.Equal(t, text, back)
		var std string
		require.NoError(t, json.Unmarshal([]byte(quoted), &std))
		require.Equal(t, text, std)
	}
	require.Equal(t, payload.JSON(`"<b>"`), payload.Quote("<b>"))
	require.Equal(t, payload.JSON("\"a\uFFFD\""), payload.Quote("a\xff"))
	_, err := payload.Unquote("1")
	require.EqualError(t, err, "expected string, got number")
	_, err = payload.Unquote(`"a" b`)
	require.ErrorAs(t, err, new(*payload.SyntaxError))
}

func TestKindOf(t *testing.T) {
	for text, want := range map[payload.JSON]string{
		" null": "null", //nolint:gocritic // the space is meant
		"":      "nothing", "x": "nothing", "true": "boolean", "false": "boolean",
		"-1": "number", "0": "number", `"a"`: "string", "\n[": "array", "{}": "object",
	} {
		require.Equal(t, want, payload.KindOf(text).String(), string(text))
	}
}

func TestCanonical(t *testing.T) {
	same := [][2]payload.JSON{
		{`{"a":1,"b":[1,2]}`, ` { "b" : [ 1 , 2 ] , "a" : 1 } `},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"y":2,"x":1}}`},
		{`"\u0061\/"`, `"a/"`},
		{`{"\u0061":1}`, `{"a":1}`},
		{`{"a":1,"a":2}`, `{"a":2}`},
		{` null`, `null`},
	}
	for _, pair := range same {
		require.True(t, payload.Equal(pair[0], pair[1]), "%s %s", pair[0], pair[1])
		require.Equal(t, payload.CanonicalDigest(pair[0]), payload.CanonicalDigest(pair[1]))
	}
	different := [][2]payload.JSON{
		{`1`, `1.0`},
		{`9007199254740993`, `9007199254740992`},
		{`[1,2]`, `[2,1]`},
		{`"1"`, `1`},
		{`null`, ``},
		{`{"a":null}`, `{}`},
		{`nonsense`, `nonsens`},
	}
	for _, pair := range different {
		require.False(t, payload.Equal(pair[0], pair[1]), "%s %s", pair[0], pair[1])
		require.NotEqual(t, payload.CanonicalDigest(pair[0]), payload.CanonicalDigest(pair[1]))
	}
	require.Regexp(t, "^[0-9a-f]{32}$", payload.CanonicalDigest("{}"))
}
