package prompt_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/form"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
)

const refundSchema = `{"type": "object", "required": ["decision"], "properties": {
	"decision": {"enum": ["approved", "approved_with_conditions", "rejected"]},
	"conditions": {"type": "string", "minLength": 3, "description": "What the customer has to do"},
	"share": {"type": "integer", "minimum": 0, "maximum": 100, "default": 100},
	"notify": {"type": "boolean"},
	"items": {"type": "array", "items": {"type": "string"}},
	"other": {}
}, "if": {"properties": {"decision": {"const": "approved_with_conditions"}}}, "then": {"required": ["conditions"]}}`

// What a person types, line by line, and the answer that it makes.
func TestAnswersAreTypedFieldByField(t *testing.T) {
	small := `{"type":"object","required":["decision"],"properties":{"decision":{"enum":["yes","no"]}}}`
	for name, test := range map[string]struct {
		schema, typed, answer string
		says                  []string
	}{
		"each field": {
			refundSchema, "2\n10% fee\n50\ny\n[\"a\"]\nby hand\ny\n",
			`{"decision":"approved_with_conditions","conditions":"10% fee","share":50,"notify":true,"items":["a"],"other":"by hand"}`,
			[]string{
				"decision (1 approved, 2 approved_with_conditions, 3 rejected)> ", "  What the customer has to do\n",
				"conditions (text)> ", "share, optional (integer from 0 to 100) [100]> ", "notify, optional (yes or no)> ",
				`items, optional (text; several with commas)> `, "other, optional (JSON or text)> ",
			},
		},
		"defaults and optional fields": {refundSchema, "approved\n\n\n\n\n\ny\n", `{"decision":"approved","share":100}`, nil},
		"the rest left out":            {refundSchema, "1\n:done\n\nSecond paragraph\ny\n", `{"decision":"approved","share":100}`, []string{"  your answer\n    decision  approved\n    share     100\n  send it? [y/n]   y, n or :quit\n"}},
		"a default that is wrong": {
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"n":{"type":"integer","maximum":3,"default":4}}}`,
			"x\n:done\n3\ny\n", `{"a":"x","n":3}`,
			[]string{"  4 is more than 3\n"},
		},
		"a default left out": {refundSchema, "1\n\n:skip\n:done\ny\n", `{"decision":"approved"}`, nil},
		"a field that another demands": {
			refundSchema, "2\n:done\n\n:skip\nok\nbring it back\ny\n", `{"decision":"approved_with_conditions","conditions":"bring it back","share":100}`,
			[]string{"\n  conditions (text)> ", "conditions is required", "minLength"},
		},
		"a field that two others demand": {
			`{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"enum":["x","y"]},"why":{"type":"string"}},
				"if":{"required":["a","b"],"properties":{"a":{"const":"x"},"b":{"const":"x"}}},"then":{"required":["why"]}}`,
			"x\nx\n\nbecause\ny\n", `{"a":"x","b":"x","why":"because"}`,
			[]string{"why, optional (text)> ", "why is missing", "  why (text)> "},
		},
		"wrong fields": {
			refundSchema, "perhaps\n4\n\n3\n\n101\n1.5\nmany\n7\nmaybe\nno\n[a, b\n[1]\n[]\n\ny\n",
			`{"decision":"rejected","share":7,"notify":false,"items":[]}`,
			[]string{"want one of: 1 approved", "decision is required", "101 is more than 100", "want integer from 0 to 100", "want one of: yes or no", "not JSON", "got number, want string"},
		},
		"back and again": {
			refundSchema, ":back\n:done\n1\n:back\n3\n:done\nn\n\nlost parcel\n:done\ny\n", `{"decision":"rejected","conditions":"lost parcel","share":100}`,
			[]string{"[rejected]> ", "  this is the first field\n", "  decision is required\n"},
		},
		"back from a field that is demanded": {refundSchema, "2\n:done\n:back\n1\n:done\ny\n", `{"decision":"approved","share":100}`, nil},
		"back from a field that is wrong": {
			`{"type":"object","required":["decision"],"properties":{"decision":{"enum":["yes","no"]},"why":{"type":"string"}},
				"if":{"not":{"properties":{"decision":{"const":"yes"}}}},"then":{"required":["why"]}}`,
			"no\n:done\n:back\nyes\n:done\ny\n", `{"decision":"yes"}`,
			[]string{"why is missing"},
		},
		"as a whole": {refundSchema, `{"decision":"rejected","share":1}` + "\n", `{"decision":"rejected","share":1}`, nil},
		"as a whole, wrong": {
			refundSchema, `{"decision":"later"}` + "\n:json\nno\n" + `{"decision":"rejected"}` + "\n", `{"decision":"rejected"}`,
			[]string{"decision", "not JSON"},
		},
		"a text with a colon": {refundSchema, "1\n:soon\n\":soon\"\n:done\ny\n", `{"decision":"approved","conditions":":soon","share":100}`, []string{`there is no :soon here; see :help, and type a text as ":soon"`}},
		"help":                {refundSchema, ":help\n1\n:done\ny\n", `{"decision":"approved","share":100}`, []string{"  :back   the field before\n"}},
		"an editor": {
			refundSchema, "1\n:edit\n:back\n\n50\nyes\n:skip\n7\ny\n", `{"decision":"approved","conditions":"written\nin an editor","share":50,"notify":true,"other":7}`,
			[]string{"conditions, optional (text) [written …]> ", "    decision    approved\n    conditions\n      | written\n      | in an editor\n    share       50\n    notify      true\n    other       7\n"},
		},
		"one field is sent at once": {small, "2\n", `{"decision":"no"}`, []string{"decision (1 yes, 2 no)> "}},
		"a boolean":                 {`{"type":"boolean"}`, "perhaps\nYes\n", `true`, []string{"answer (yes or no)> "}},
		"numbers as choices":        {`{"enum":[3,1]}`, "2\n1\n", `1`, []string{"answer (3, 1)> ", "want one of: 3, 1"}},
		"a text":                    {`{"type":"string","maxLength":5}`, "too long\n\nshort\ny\n", `"short"`, []string{"maxLength"}},
		"a number":                  {`{"type":"number","maximum":2}`, "two\n3\n1.50\n", `1.50`, []string{"want number up to 2"}},
		"an integer":                {`{"type":"integer","minimum":1,"maximum":90}`, "30.5\n\"30\"\nthirty\n3.0e1\n", `3.0e1`, []string{strings.Repeat("answer (integer from 1 to 90)>   want integer from 1 to 90\n", 3)}},
		"a list":                    {`{"type":"array"}`, "a\n[1]\n", `[1]`, []string{"not JSON"}},
		"a list of texts": {
			`{"type":"array","items":{"type":"string"}}`, "a,,b\n[1]\na b, 2 ,\"c\ny\n", `["a b","2","\"c"]`,
			[]string{"answer (text; several with commas)> ", "a value between commas is missing", "got number, want string", `send ["a b","2","\"c"]? [y/n] `},
		},
		"a list of texts in quotes": {`{"type":"array","items":{"type":"string"}}`, "\"a, b\", \"c\"\ny\n", `["a, b", "c"]`, nil},
		"a list of numbers": {
			`{"type":"array","items":{"type":"integer","minimum":1},"maxItems":2}`, "1, two\n1,2,3\n0\n1, 2\ny\n", `[1,2]`,
			[]string{"answer (integer from 1; several with commas)> ", "want integer from 1", "maxItems", "0 is less than 1"},
		},
		"a list of choices":          {`{"type":"array","items":{"enum":["red","blue"]}}`, "2, green\n2, red\ny\n", `["blue","red"]`, []string{"answer (1 red, 2 blue; several with commas)> ", "want one of: 1 red, 2 blue"}},
		"a list of an editor":        {`{"type":"object","required":["a"],"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, ":edit\ny\n", `{"a":["written","in an editor"]}`, nil},
		"a list of lists":            {`{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`, "1, 2\n[[1]]\n", `[[1]]`, []string{"answer (JSON, like [])> ", "not JSON"}},
		"anything, as JSON":          {``, "true\n", `true`, nil},
		"anything, as text":          {``, "tru\nn\nAnn\ny\n", `"Ann"`, []string{`send "tru"? [y/n] `}},
		"a schema of another kind":   {`{"not":{"type":"boolean"}}`, "true\n1\n", `1`, []string{"answer (JSON or text)> "}},
		"a text of an editor":        {`{"type":"string"}`, ":help\n:soon\n:edit\nn\n:edit\ny\n", `"written\nin an editor"`, []string{"there is no :soon here", "  :quit   leave"}},
		"a pasted text":              {`{"type":"string"}`, "First\n\nSecond\nn\nFirst\ny\n", `"First"`, nil},
		"a text with quotes":         {`{"type":"string"}`, "\"yes\"\n", `"yes"`, nil},
		"alternatives of choices":    {`{"oneOf":[{"const":"a"},{"const":"b"}]}`, "c\nb\n", `"b"`, []string{"answer (1 a, 2 b)> "}},
		"a text or something else":   {`{"anyOf":[{"type":"boolean"},{"type":"string","maxLength":3}]}`, "perhaps\nno\n", `false`, []string{"yes or no, or JSON"}},
		"something else or a text":   {`{"anyOf":[{"type":"boolean"},{"type":"string"}]}`, "perhaps\ny\n", `"perhaps"`, nil},
		"one field that is left out": {`{"properties":{"note":{"type":"string"}}}`, "\nn\nhm\ny\n", `{"note":"hm"}`, []string{"send {}? [y/n] "}},
		"a field of any kind that a condition makes an object": {
			`{"type":"object","required":["type"],"properties":{"type":{"enum":["accept","edit"]},"args":{}},
				"if":{"properties":{"type":{"const":"edit"}}},"then":{"required":["args"],"properties":{"args":{"type":"object"}}}}`,
			"edit\nhelp\n[1]\n{\"to\":1}\ny\n", `{"type":"edit","args":{"to":1}}`,
			[]string{"  args (JSON, like {})>   not JSON", "got array, want object\n  args (JSON, like {})>   your answer"},
		},
		"a field of any kind": {
			`{"type":"object","properties":{"a":{}},"allOf":[{"properties":{"a":{"type":"object"}}}]}`,
			"help\n{\"to\":1}\ny\n", `{"a":{"to":1}}`,
			[]string{"a, optional (JSON or text)> ", "a got string, want object\n  a, optional (JSON or text)> "},
		},
		"a field with alternatives": {
			`{"type":"object","required":["args"],"properties":{"args":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/A"},{"type":"null"}]}},
				"$defs":{"A":{"type":"object","required":["to"]}}}`,
			"{}\n{\"to\":1}\n", `{"args":{"to":1}}`,
			[]string{"args (text, or JSON)> "},
		},
		"a field that may be null": {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{}}}`, "null\n\ny\n", `{"a":null}`, nil},
		"a field that refers to choices": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"},"b":{}},"$defs":{"A":{"enum":["x","y"]}}}`, "z\nx\n\ny\n", `{"a":"x"}`, []string{"want one of: 1 x, 2 y"},
		},
		"a field that refers to the whole": {
			`{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}}}}`,
			"ann\n[{\"name\":\"x\"}]\ny\n", `{"name":"ann","children":[{"name":"x"}]}`, nil,
		},
		"a demand that ends": {
			`{"type":"object","required":["type"],"properties":{"type":{"enum":["accept","edit"]}},
				"if":{"properties":{"type":{"const":"edit"}}},"then":{"required":["args"],"properties":{"args":{"type":"object"}}}}`,
			"edit\n:back\naccept\n", `{"type":"accept"}`, nil,
		},
		"alternatives": {
			`{"if":{"type":"array"},"then":{"minItems":1},"else":{"type":"object","required":["type"],"properties":{"type":{"enum":["accept","edit"]}},
				"if":{"properties":{"type":{"const":"edit"}}},"then":{"required":["args"],"properties":{"args":{"type":"object"}}}}}`,
			"2\nhelp\n{\"to\":1}\ny\n", `{"type":"edit","args":{"to":1}}`,
			[]string{"args (JSON, like {})> ", "not JSON"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, said, err := askAnswer(t, test.schema, test.typed)
			require.NoError(t, err, said)
			require.Equal(t, test.answer, answer, said)
			for _, words := range test.says {
				require.Contains(t, said, words)
			}
		})
	}
}

func TestAPersonMayLeaveAtEachField(t *testing.T) {
	for _, typed := range []string{"", "1\n", "1\n:quit\n", "1\n:json\n", "1\n:done\n", "2\n:done\n", "1\n:done\n:quit\n"} {
		answer, said, err := askAnswer(t, refundSchema, typed)
		require.ErrorIs(t, err, prompt.ErrNoAnswer, said)
		require.Empty(t, answer)
	}
}

// requireDialogs has a person type lines, and compares what is said word by word.
func requireDialogs(t *testing.T, dialogs map[string]dialog) {
	t.Helper()
	for name, test := range dialogs {
		t.Run(name, func(t *testing.T) {
			answer, said, err := askAnswer(t, test.schema, test.typed)
			require.NoError(t, err, said)
			require.Equal(t, test.answer, answer, said)
			require.Equal(t, strings.TrimPrefix(test.says, "\n"), strings.ReplaceAll(said, "> ", ">\n"))
		})
	}
}

// dialog is what is typed, the answer that it makes, and all that is said: a line for each
// prompt.
type dialog struct{ schema, typed, answer, says string }

func askAnswer(t *testing.T, schema, typed string) (answer, said string, err error) {
	t.Helper()
	out := &bytes.Buffer{}
	p := prompt.NewPrompter(output.NewPrinter(out), output.IO{
		In:   strings.NewReader(typed),
		Edit: func(context.Context, string) (string, error) { return "written\nin an editor\n", nil },
	})
	answer, err = p.ReadAnswer(t.Context(), form.ParseSchema(schema))
	return answer, out.String(), err
}

func TestAPersonMayLeaveEachQuestion(t *testing.T) {
	for _, schema := range []string{"", `{"type":"string"}`, `{"enum":["a","b"]}`, `{"type":"array"}`, `{"not":{}}`} {
		answer, said, err := askAnswer(t, schema, ":quit\n")
		require.ErrorIs(t, err, prompt.ErrNoAnswer, said)
		require.Empty(t, answer)
	}
}

// What an editor returned is not lost when it does not fit.
func TestARefusedTextIsEditedOn(t *testing.T) {
	var edited []string
	p := prompt.NewPrompter(output.NewPrinter(&bytes.Buffer{}), output.IO{
		In: strings.NewReader(":edit\n:edit\ny\n"),
		Edit: func(_ context.Context, text string) (string, error) {
			edited = append(edited, text)
			return map[string]string{"": "\"too long\"\n", "\"too long\"": "\"yes\"\n"}[text], nil
		},
	})
	answer, err := p.ReadAnswer(t.Context(), form.ParseSchema(`{"type":"object","required":["why"],"properties":{"why":{"type":"string","maxLength":6}}}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"why":"\"yes\""}`, answer)
	require.Equal(t, []string{"", "\"too long\""}, edited)
}

// A schema whose conditions multiply is read at once.
func TestConditionsOfConditionsAreReadOnce(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{}}}`
	for range 8 {
		var values strings.Builder
		for i := range 50 {
			fmt.Fprintf(&values, `,"p%d":{"const":1}`, i)
		}
		schema = `{"type":"object","properties":{"a":{}},"if":{"properties":{"p":{"const":1}` + values.String() + `}},"then":` + schema + `}`
	}
	require.Len(t, form.ParseSchema(schema).Fields(), 1)
}
