package payload_test

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

func TestAdd(t *testing.T) {
	nines := strings.Repeat("9", 100)
	tests := []struct{ a, b, want payload.JSON }{
		{"1", "2", "3"},
		{"-5", "2", "-3"},
		{"-2", "2", "0"},
		{"9007199254740993", "1", "9007199254740994"},
		{"9223372036854775807", "1", "9223372036854775808"},
		{"-9223372036854775808", "-1", "-9223372036854775809"},
		{payload.JSON(nines), "1", payload.JSON("1" + strings.Repeat("0", 100))},
		{payload.JSON(nines), payload.JSON("-" + nines), "0"},
		{"0.1", "0.2", "0.3"},
		{"1.5", "1.5", "3.0"},
		{"1.50", "-0.25", "1.25"},
		{"-1.5", "0.25", "-1.25"},
		{"1", "-1.0", "0.0"},
		{"1e2", "1", "101"},
		{"1e-2", "1", "1.01"},
		{"12.5e1", "0", "125"},
		{"1e400", "1", payload.JSON("1" + strings.Repeat("0", 399) + "1")},
		{"1e-5000", "2.5", "2.5"},
		{`"ab"`, ` "c\"d" `, `"abc\"d"`},
		{`""`, `"退"`, `"退"`},
		{`[1.0]`, `[ 2 , {"a":1e2} ]`, `[1.0,2 , {"a":1e2}]`},
		{`[]`, `[1]`, `[1]`},
		{`[1]`, `[ ]`, `[1]`},
		{`[ ]`, `[ ]`, `[ ]`},
	}
	for _, test := range tests {
		got, err := payload.Add(test.a, test.b)
		require.NoError(t, err)
		require.Equal(t, test.want, got, "%s + %s", test.a, test.b)
	}
}

func TestAddRefuses(t *testing.T) {
	tests := []struct {
		a, b payload.JSON
		want string
	}{
		{"1", `"1"`, "cannot add number and string: both must be of one kind"},
		{"null", "null", "cannot add null and null: only numbers, strings and arrays can be added"},
		{"{}", "{}", "cannot add object and object: only numbers, strings and arrays can be added"},
		{"1e99999", "1e99999", "cannot add number and number: the sum is larger than a number can be"},
		{"", "1", "cannot add nothing and number: both must be of one kind"},
	}
	for _, test := range tests {
		_, err := payload.Add(test.a, test.b)
		require.ErrorAs(t, err, new(*payload.OperandError))
		require.EqualError(t, err, test.want)
	}
	for _, bad := range []payload.JSON{"1x", "1e", `"a`} {
		_, err := payload.Add(bad, bad)
		require.ErrorAs(t, err, new(*payload.SyntaxError), string(bad))
	}
}

func FuzzAdd(f *testing.F) {
	f.Add(int64(1), int64(-1), uint8(3), uint8(0))
	f.Add(int64(9007199254740993), int64(-9223372036854775808), uint8(1), uint8(19))
	f.Fuzz(func(t *testing.T, a, b int64, scaleA, scaleB uint8) {
		x, y := formatScaled(a, scaleA%30), formatScaled(b, scaleB%30)
		got, err := payload.Add(payload.JSON(x), payload.JSON(y))
		require.NoError(t, err)
		require.NoError(t, payload.Validate(string(got), payload.Limits{}))
		want := new(big.Rat).Add(parseRational(t, x), parseRational(t, y))
		require.Zero(t, want.Cmp(parseRational(t, string(got))), "%s + %s = %s", x, y, got)
		less, err := payload.Less(payload.JSON(x), payload.JSON(y))
		require.NoError(t, err)
		require.Equal(t, parseRational(t, x).Cmp(parseRational(t, y)) < 0, less, "%s < %s", x, y)
	})
}

// formatScaled spells a number with an exponent or without.
func formatScaled(n int64, scale uint8) string {
	text := strconv.FormatInt(n, 10)
	switch scale % 3 {
	case 1:
		return text + "e-" + strconv.Itoa(int(scale))
	case 2:
		return text + ".0" + strconv.Itoa(int(scale)) + "E+" + strconv.Itoa(int(scale))
	}
	return text
}

func parseRational(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	return r
}

func TestLess(t *testing.T) {
	ordered := []payload.JSON{
		"-1e400", "-10", "-9.5", "-1e-400", "0", "1e-400", "0.5", "1", "1.5", "2",
		"9007199254740992", "9007199254740993", "1e400", "1e999999999999", "1e9999999999999999999999",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			got, err := payload.Less(a, b)
			require.NoError(t, err)
			if j >= len(ordered)-2 && i >= len(ordered)-2 {
				continue // beyond any exponent that is told apart
			}
			require.Equal(t, i < j, got, "%s < %s", a, b)
		}
	}
	for _, pair := range [][2]payload.JSON{{"1", "1.0"}, {"0", "-0.0e5"}, {"100", "1e2"}} {
		for _, p := range [][2]payload.JSON{pair, {pair[1], pair[0]}} {
			got, err := payload.Less(p[0], p[1])
			require.NoError(t, err)
			require.False(t, got)
		}
	}
	got, err := payload.Less(`"a"`, `"\u0062"`)
	require.NoError(t, err)
	require.True(t, got)
	_, err = payload.Less("1", `"a"`)
	require.EqualError(t, err, "cannot compare number and string: both must be numbers, or both strings")
	_, err = payload.Less("[]", "[]")
	require.ErrorAs(t, err, new(*payload.OperandError))
}

func TestMerge(t *testing.T) {
	got, err := payload.Merge(`{"b":1.0,"a":{"x":1,"y":[1]}, "c":null}`, `{"a":{"z":9007199254740993},"d":1e400,"c":2,"d":3}`)
	require.NoError(t, err)
	require.Equal(t, payload.JSON(`{"b":1.0,"a":{"z":9007199254740993},"c":2,"d":3}`), got) //nolint:testifylint // the text counts
	got, err = payload.DeepMerge(`{"b":1.0,"a":{"x":1,"y":[1],"o":{"p":1}}}`, `{"a":{"z":2,"x":[],"y":{"n":1},"o":{"q":2}}}`)
	require.NoError(t, err)
	require.Equal(t, payload.JSON(`{"b":1.0,"a":{"x":[],"y":{"n":1},"o":{"p":1,"q":2},"z":2}}`), got) //nolint:testifylint // the text counts
	for _, pair := range [][2]payload.JSON{{"[]", "{}"}, {"{}", "null"}, {"{}", ""}} {
		_, err = payload.Merge(pair[0], pair[1])
		require.ErrorAs(t, err, new(*payload.OperandError))
		_, err = payload.DeepMerge(pair[0], pair[1])
		require.ErrorAs(t, err, new(*payload.OperandError))
	}
	_, err = payload.Merge(`{"a":1`, `{}`)
	require.ErrorAs(t, err, new(*payload.SyntaxError))
	_, err = payload.Merge(`{}`, `{"a":`)
	require.ErrorAs(t, err, new(*payload.SyntaxError))
}

func TestUnion(t *testing.T) {
	got, err := payload.Union(`[1,{"a":1,"b":2},"x",1]`, `["x", { "b":2,"a":1 }, 1.0, [], "\u0078", []]`)
	require.NoError(t, err)
	require.Equal(t, payload.JSON(`[1,{"a":1,"b":2},"x",1,1.0,[]]`), got)
	_, err = payload.Union(`[1]`, `1`)
	require.EqualError(t, err, "cannot unite array and number: both must be arrays")
	_, err = payload.Union(`[1`, `[]`)
	require.ErrorAs(t, err, new(*payload.SyntaxError))
}

func TestMergeMessages(t *testing.T) {
	const a, b = `{"type":"human","content":"hi","id":"a","n":1.0}`, `{"id":"b", "type":"ai","content":"yo"}`
	tests := map[string]struct {
		current []payload.JSON
		update  payload.JSON
		want    []payload.JSON
	}{
		"append one":    {[]payload.JSON{a}, b, []payload.JSON{a, b}},
		"append a list": {nil, "[" + a + " , " + b + "]", []payload.JSON{a, b}},
		"string":        {nil, `"hi"`, []payload.JSON{`{"type":"human","content":"hi","id":"id-0"}`}},
		"pair":          {nil, `["assistant","yo"]`, []payload.JSON{`{"type":"ai","content":"yo","id":"id-0"}`}},
		"developer":     {nil, `{"role":"developer","content":"yo"}`, []payload.JSON{`{"type":"system","content":"yo","id":"id-0"}`}},
		"pairs and strings": {[]payload.JSON{a}, `[["system","s"],"hi",["user",[{"text":1.0}]]]`, []payload.JSON{
			a, `{"type":"system","content":"s","id":"id-0"}`, `{"type":"human","content":"hi","id":"id-1"}`,
			`{"type":"human","content":[{"text":1.0}],"id":"id-2"}`,
		}},
		"role": {nil, `{"role":"user","content":"hi","x":1e2}`, []payload.JSON{
			`{"type":"human","content":"hi","x":1e2,"id":"id-0"}`,
		}},
		"null id": {nil, `{"id":null,"type":"ai","content":""}`, []payload.JSON{`{"id":"id-0","type":"ai","content":""}`}},
		"current without id": {[]payload.JSON{`"old"`}, `"new"`, []payload.JSON{
			`{"type":"human","content":"old","id":"id-0"}`, `{"type":"human","content":"new","id":"id-1"}`,
		}},
		"replace in place": {[]payload.JSON{a, b}, `{"type":"human","content":"changed","id":"a"}`, []payload.JSON{
			`{"type":"human","content":"changed","id":"a"}`, b,
		}},
		"last duplicate at the first place": {
			nil, `[{"type":"ai","id":"x","content":1},` + a + `,{"type":"ai","id":"x","content":2}]`,
			[]payload.JSON{`{"type":"ai","id":"x","content":2}`, a},
		},
		"remove":                   {[]payload.JSON{a, b}, `{"type":"remove","id":"a"}`, []payload.JSON{b}},
		"remove and bring back":    {[]payload.JSON{a, b}, `[{"type":"remove","id":"a"},` + a + `]`, []payload.JSON{a, b}},
		"remove what the list has": {[]payload.JSON{b}, `[` + a + `,{"type":"remove","id":"a"}]`, []payload.JSON{b}},
		"remove all":               {[]payload.JSON{a}, `["x",{"type":"remove","id":"__remove_all__"},` + b + `]`, []payload.JSON{b}},
		"remove all, last wins":    {[]payload.JSON{a}, `[{"type":"remove","id":"__remove_all__"},` + b + `,{"type":"remove","id":"__remove_all__"}]`, []payload.JSON{}},
		"nothing":                  {[]payload.JSON{a}, `[]`, []payload.JSON{a}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := append([]payload.JSON(nil), test.current...)
			got, err := payload.MergeMessages(test.current, test.update, func(n int) string { return "id-" + strconv.Itoa(n) })
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.Equal(t, before, test.current)
		})
	}
}

func TestMergeMessagesRefuses(t *testing.T) {
	tests := map[payload.JSON]string{
		`[{"type":"remove","id":"zz"}]`:       `message 0: cannot remove "zz": no message has this id`,
		`["a",{"type":"remove"}]`:             `message 1: a remove message needs the "id" of the message to remove`,
		`[1]`:                                 `message 0: number is no message; use an object, a string or [role, content]`,
		`null`:                                `message 0: null is no message; use an object, a string or [role, content]`,
		`[["a","b","c"]]`:                     `message 0: an array must be a pair [role, content]`,
		`{"content":"x"}`:                     `message 0: the object has neither "type" nor "role"`,
		`{"type":1}`:                          `message 0: "type" must be a string`,
		`{"role":1}`:                          `message 0: "role" must be a string`,
		`{"type":"ai","id":7}`:                `message 0: "id" must be a string`,
		`["a",{"type":"remove","id":"nope"}]`: `message 1: cannot remove "nope": no message has this id`,
	}
	for update, want := range tests {
		_, err := payload.MergeMessages(nil, update, strconv.Itoa)
		require.ErrorAs(t, err, new(*payload.MessageError))
		require.EqualError(t, err, want)
	}
	_, err := payload.MergeMessages(nil, `[{"type":`, strconv.Itoa)
	require.ErrorAs(t, err, new(*payload.SyntaxError))
}
