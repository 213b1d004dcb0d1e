package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/prompt"
)

const orderSchema = `{"type": "object", "required": ["order"], "properties": {
	"order": {"type": "object", "required": ["amount", "to"], "properties": {
		"amount": {"type": "integer", "minimum": 1},
		"to": {"type": "object", "required": ["city"], "description": "Where it goes", "properties": {
			"city": {"type": "string"},
			"street": {"type": "string"}}}}},
	"gift": {"type": "object", "description": "A card goes with it", "default": {"words": "Enjoy!"}, "properties": {
		"words": {"type": "string"},
		"colour": {"enum": ["red", "blue"]}}}
}}`

func TestAnObjectIsAskedForByItsFields(t *testing.T) {
	requireDialogs(t, map[string]dialog{
		"required objects, the optional one left out": {
			orderSchema, "0\n5\nBasel\n\nno\ny\n", `{"order":{"amount":5,"to":{"city":"Basel"}}}`, `
  field by field; :help tells what else may be typed
  order.amount (integer from 1)>
  0 is less than 1
  order.amount (integer from 1)>
  Where it goes
  order.to.city (text)>
  order.to.street, optional (text)>
  A card goes with it
  gift, optional: fill it in (yes or no) [{"words":"Enjoy!"}]>
  your answer
    order.amount   5
    order.to.city  Basel
  send it? [y/n] `,
		},
		"the optional one filled in, from its default": {
			orderSchema, "5\nBasel\n:skip\nperhaps\nyes\n\n2\nn\n\n:done\ny\n",
			`{"order":{"amount":5,"to":{"city":"Basel"}},"gift":{"words":"Enjoy!","colour":"blue"}}`, `
  field by field; :help tells what else may be typed
  order.amount (integer from 1)>
  Where it goes
  order.to.city (text)>
  order.to.street, optional (text)>
  A card goes with it
  gift, optional: fill it in (yes or no) [{"words":"Enjoy!"}]>
  want yes or no, or an object as JSON
  A card goes with it
  gift, optional: fill it in (yes or no) [{"words":"Enjoy!"}]>
  gift.words, optional (text) [Enjoy!]>
  gift.colour, optional (1 red, 2 blue)>
  your answer
    order.amount   5
    order.to.city  Basel
    gift.words     Enjoy!
    gift.colour    blue
  send it? [y/n]   order.amount (integer from 1) [5]>
  Where it goes
  order.to.city (text) [Basel]>
  your answer
    order.amount   5
    order.to.city  Basel
    gift.words     Enjoy!
    gift.colour    blue
  send it? [y/n] `,
		},
		"the optional one as JSON, with more than its fields": {
			orderSchema, "5\nBasel\n:skip\n{\"colour\":1}\n{\"colour\":\"red\",\"size\":[2]}\n:back\n\n:done\ny\n",
			`{"order":{"amount":5,"to":{"city":"Basel"}},"gift":{"words":"Enjoy!","colour":"red","size":[2]}}`, `
  field by field; :help tells what else may be typed
  order.amount (integer from 1)>
  Where it goes
  order.to.city (text)>
  order.to.street, optional (text)>
  A card goes with it
  gift, optional: fill it in (yes or no) [{"words":"Enjoy!"}]>
  colour value must be one of 'red', 'blue'
  A card goes with it
  gift, optional: fill it in (yes or no) [{"words":"Enjoy!"}]>
  gift.words, optional (text) [Enjoy!]>
  A card goes with it
  gift, optional: fill it in (yes or no) [yes]>
  gift.words, optional (text) [Enjoy!]>
  your answer
    order.amount   5
    order.to.city  Basel
    gift.size      [2]
    gift.words     Enjoy!
    gift.colour    red
  send it? [y/n] `,
		},
	})
}

func TestAnObjectThatIsMissingIsFilledIn(t *testing.T) {
	requireDialogs(t, map[string]dialog{
		"a demand that the form does not know": {
			`{"type":"object","required":["kind"],"properties":{"kind":{"enum":["a","b"]},
				"to":{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}},
				"if":{"not":{"properties":{"kind":{"const":"a"}}}},"then":{"required":["to"]}}`,
			"b\n\n:skip\nBern\ny\n", `{"kind":"b","to":{"city":"Bern"}}`, `
  field by field; :help tells what else may be typed
  kind (1 a, 2 b)>
  to, optional: fill it in (yes or no)>
  to is missing
  to.city (text)>
  to.city is required
  to.city (text)>
  your answer
    kind     b
    to.city  Bern
  send it? [y/n] `,
		},
		"a place in it": {
			`{"type":"object","required":["to"],"properties":{"to":{"type":"object","additionalProperties":false,
				"properties":{"city":{"$ref":"#/$defs/City","minLength":1},"zip":{}}}},"$defs":{"City":{"enum":["Bern","Basel"]}}}`,
			"Berne\n8001\nBern\ny\n", `{"to":{"city":"Bern","zip":8001}}`, `
  field by field; :help tells what else may be typed
  to.city, optional (JSON or text)>
  to.zip, optional (JSON or text)>
  to/city value must be one of 'Bern', 'Basel'
  to.city, optional (JSON or text)>
  your answer
    to.city  "Bern"
    to.zip   8001
  send it? [y/n] `,
		},
	})
}

// Objects in objects are asked for up to a depth, and as JSON from there on.
func TestObjectsAreAskedForUpToADepth(t *testing.T) {
	schema := `{"type":"integer"}`
	for range 5 {
		schema = `{"type":"object","required":["a"],"properties":{"a":` + schema + `}}`
	}
	answer, said, err := askAnswer(t, schema, "x\n{\"a\":1}\n")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":{"a":{"a":{"a":{"a":1}}}}}`, answer)
	require.Contains(t, said, `  a.a.a.a (JSON, like {"a":0})> `)
}

const decisionSchema = `{"type":"object","required":["do"],"additionalProperties":false,
	"properties":{"do":{"enum":["pay","reject","wait","ask"]},"account":{"type":"string"},"why":{"type":"string"},
		"days":{"type":"integer"}},
	"if":{"properties":{"do":{"const":"pay"}},"required":["do"]},
	"then":{"properties":{"do":true,"account":true},"additionalProperties":false,"required":["account"]},
	"allOf":[
		{"if":{"properties":{"do":{"enum":["reject","ask"]}}},"then":{"properties":{"days":false,"account":{"not":{}}},"required":["why"]}},
		{"if":{"properties":{"do":{"const":"wait"}}},"then":{"required":["until"],"properties":{"do":{},"until":{"type":"string"}}}}]}`

func TestFieldsThatAConditionLeavesOutAreNotAskedFor(t *testing.T) {
	requireDialogs(t, map[string]dialog{
		"closed": {decisionSchema, "pay\n:skip\n6600\ny\n", `{"do":"pay","account":"6600"}`, `
  field by field; :help tells what else may be typed
  do (1 pay, 2 reject, 3 wait, 4 ask)>
  account (text)>
  account is required
  account (text)>
  your answer
    do       pay
    account  6600
  send it? [y/n] `},
		"refused": {decisionSchema, "4\nno receipt\ny\n", `{"do":"ask","why":"no receipt"}`, `
  field by field; :help tells what else may be typed
  do (1 pay, 2 reject, 3 wait, 4 ask)>
  why (text)>
  your answer
    do   ask
    why  no receipt
  send it? [y/n] `},
		"chosen anew": {decisionSchema, "1\n6600\nn\n2\nno receipt\ny\n", `{"do":"reject","why":"no receipt"}`, `
  field by field; :help tells what else may be typed
  do (1 pay, 2 reject, 3 wait, 4 ask)>
  account (text)>
  your answer
    do       pay
    account  6600
  send it? [y/n]   do (1 pay, 2 reject, 3 wait, 4 ask) [pay]>
  why (text)>
  your answer
    do   reject
    why  no receipt
  send it? [y/n] `},
		"back over what is not asked for": {decisionSchema, "2\n:back\n1\n:back\n2\nlate\ny\n", `{"do":"reject","why":"late"}`, `
  field by field; :help tells what else may be typed
  do (1 pay, 2 reject, 3 wait, 4 ask)>
  why (text)>
  do (1 pay, 2 reject, 3 wait, 4 ask) [reject]>
  account (text)>
  do (1 pay, 2 reject, 3 wait, 4 ask) [pay]>
  why (text)>
  your answer
    do   reject
    why  late
  send it? [y/n] `},
		"in an object, and added": {
			`{"type":"object","required":["a"],"properties":{"a":` + strings.Replace(decisionSchema, `"additionalProperties":false,`, "", 1) + `}}`,
			"wait\n:done\nmonday\ny\n", `{"a":{"do":"wait","until":"monday"}}`, `
  field by field; :help tells what else may be typed
  a.do (1 pay, 2 reject, 3 wait, 4 ask)>
  a.account, optional (text)>
  a.until (text)>
  your answer
    a.do     wait
    a.until  monday
  send it? [y/n] `,
		},
	})
}

// Schemas of classes refer to those of other classes, and to themselves.
func TestAnObjectElsewhereInTheSchemaIsAskedForByItsFields(t *testing.T) {
	requireDialogs(t, map[string]dialog{
		"an address": {
			`{"type":"object","required":["to"],"properties":{"to":{"$ref":"#/$defs/An%20Address","description":"Where to"}},
				"$defs":{"An Address":{"type":"object","required":["city"],"properties":{"city":{"$ref":"#/$defs/City"},"zip":{"type":"integer"}}},
					"City":{"$ref":"#/$defs/Name"},"Name":{"type":"string","minLength":3}}}`,
			"X\nBern\n:skip\ny\n", `{"to":{"city":"Bern"}}`, `
  field by field; :help tells what else may be typed
  Where to
  to.city (text)>
  minLength: got 1, want 3
  Where to
  to.city (text)>
  to.zip, optional (integer)>
  your answer
    to.city  Bern
  send it? [y/n] `,
		},
		"itself": {
			`{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"next":{"$ref":"#"}}}`,
			"a\ny\nb\ny\nc\nno\ny\n", `{"name":"a","next":{"name":"b","next":{"name":"c"}}}`, `
  field by field; :help tells what else may be typed
  name (text)>
  next, optional: fill it in (yes or no)>
  next.name (text)>
  next.next, optional: fill it in (yes or no)>
  next.next.name (text)>
  next.next.next, optional: fill it in (yes or no)>
  your answer
    name            a
    next.name       b
    next.next.name  c
  send it? [y/n] `,
		},
		"nothing": {`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, "1\n", `{"a":1}`, "  a, optional (JSON or text)>\n"},
	})
}

// A schema that refers to itself at many places is read at once.
func TestReferencesThatMultiplyAreReadUpToANumber(t *testing.T) {
	var fields strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&fields, `,"p%d":{"$ref":"#"}`, i)
	}
	schema := `{"type":"object","properties":{"a":{"type":"integer"}` + fields.String() + `}}`
	answer, _, err := askAnswer(t, schema, "1\n:done\ny\n")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, answer)
}

func TestAFieldOfSeveralConditionsTakesWhatEachAllows(t *testing.T) {
	condition := func(kind, schema string) string {
		return `{"if":{"properties":{"kind":{"const":"` + kind + `"}}},
			"then":{"required":["at"],"properties":{"at":{"type":"` + schema + `"}}}}`
	}
	schema := `{"type":"object","required":["kind"],"properties":{"kind":{"enum":["day","place"]}},
		"allOf":[` + condition("day", "integer") + `,` + condition("place", "string") + `]}`
	for typed, want := range map[string]string{
		"1\n17\ny\n":           `{"kind":"day","at":17}`,
		"2\nBern\ny\n":         `{"kind":"place","at":"Bern"}`,
		"1\nBern\n17\ny\n":     `{"kind":"day","at":17}`,
		"2\n17\n\"17\"\ny\n":   `{"kind":"place","at":"17"}`,
		"1\n17\nn\n2\nx\ny\n":  `{"kind":"place","at":"x"}`,
		"1\n:skip\n:quit\n":    "",
		"1\n:back\n2\n:quit\n": "",
	} {
		answer, said, _ := askAnswer(t, schema, typed)
		require.Equal(t, want, answer, said)
	}
}

// Two values that rule each other out do not leave a person without a question.
func TestSomethingIsAskedForAlways(t *testing.T) {
	schema := `{"type":"object","minProperties":1,"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
		"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":false}},
		"allOf":[{"if":{"properties":{"b":{"const":1}},"required":["b"]},"then":{"properties":{"a":false}}}]}`
	answer, said, err := askAnswer(t, schema, "\n1\nn\n:back\n1\n:quit\n")
	require.ErrorIs(t, err, prompt.ErrNoAnswer, said)
	require.Empty(t, answer)
}

// Names and texts of a schema can't act on the terminal, nor look like lines of graphd.
func TestNamesInObjectsAreMadeVisible(t *testing.T) {
	name := `a\u001b[2K\nsend it? [y/n] y`
	schema := `{"type":"object","required":["` + name + `"],"properties":{"` + name + `":{"type":"object","properties":{
		"` + name + `":{"type":"object","description":"\u202e\ndone","default":{"\u001b":"\u009b"},"properties":{"b":{}}}}}}}`
	_, said, err := askAnswer(t, schema, "{\"\\u001b\":1}\n\ny\n")
	require.NoError(t, err)
	require.Contains(t, said, `  \u{202e}\u{a}done`)
	require.Contains(t, said, `.a\u{1b}[2K\u{a}send it? [y/n] y, optional: fill it in (yes or no)`)
	for _, r := range said {
		require.False(t, r < ' ' && r != '\n' || r == '\u202e' || r == '\u009b', said)
	}
	require.Equal(t, 1, strings.Count(said, "\n  send it? "))
}
