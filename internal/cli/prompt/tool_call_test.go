package prompt_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/prompt"
)

// paySchema is what ToolApproval of the Python SDK builds for
// pay(amount: int, to: str, note: str = "").
const paySchema = `{"type":"object","required":["type"],"properties":{
	"type":{"enum":["approve","edit","reject","respond"]},
	"args":{"description":"The arguments to use","additionalProperties":false,"properties":{
		"amount":{"title":"Amount","type":"integer"},"to":{"title":"To","type":"string"},
		"note":{"default":"","title":"Note","type":"string"}},"required":["amount","to"],"type":"object"},
	"name":{"const":"pay","description":"The tool, which can't be changed"},
	"message":{"type":"string","description":"What the model is told"}},
	"additionalProperties":false,
	"if":{"properties":{"type":{"const":"edit"}},"required":["type"]},
	"then":{"properties":{"type":true,"args":true,"name":true},"additionalProperties":false,"required":["args"]},
	"allOf":[
		{"if":{"properties":{"type":{"const":"approve"}},"required":["type"]},
			"then":{"properties":{"type":true},"additionalProperties":false}},
		{"if":{"properties":{"type":{"const":"reject"}},"required":["type"]},
			"then":{"properties":{"type":true,"message":true},"additionalProperties":false}},
		{"if":{"properties":{"type":{"const":"respond"}},"required":["type"]},
			"then":{"properties":{"type":true,"message":true},"additionalProperties":false,"required":["message"]}}]}`

const payHead = `  tools asks (tool_call): Call the tool pay?
    id  q1
    call of  pay
      amount  120
      to      "ana"
    tool_call_id  "call-1"
    answer  type: approve | edit | reject | respond, args?, name?: pay, message?
  field by field; :help tells what else may be typed
`

func TestAToolCallIsDecided(t *testing.T) {
	for name, test := range map[string]struct{ typed, answer, says string }{
		"approved": {"1\ny\n", `{"type":"approve"}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  your answer
    type  approve
  send it? [y/n] `},
		"one argument edited": {"edit\n\nben\n:done\ny\n", `{"type":"edit","args":{"amount":120,"to":"ben"}}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  The arguments to use
  args.amount (integer) [120]>
  args.to (text) [ana]>
  args.note, optional (text)>
  your answer
    type         edit
    args.amount  120
    args.to      ben
  send it? [y/n] `},
		"the rest left as it is": {"2\nmany\n90\n:done\ny\n", `{"type":"edit","args":{"amount":90,"to":"ana"}}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  The arguments to use
  args.amount (integer) [120]>
  want integer
  The arguments to use
  args.amount (integer) [120]>
  args.to (text) [ana]>
  your answer
    type         edit
    args.amount  90
    args.to      ana
  send it? [y/n] `},
		"rejected": {"3\ntoo much\ny\n", `{"type":"reject","message":"too much"}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  What the model is told
  message, optional (text)>
  your answer
    type     reject
    message  too much
  send it? [y/n] `},
		"rejected without a word": {"3\n\ny\n", `{"type":"reject"}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  What the model is told
  message, optional (text)>
  your answer
    type  reject
  send it? [y/n] `},
		"a response": {"4\n:done\n\npaid already\ny\n", `{"type":"respond","message":"paid already"}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  What the model is told
  message (text)>
  message is required
  What the model is told
  message (text)>
  message is required
  What the model is told
  message (text)>
  your answer
    type     respond
    message  paid already
  send it? [y/n] `},
		"edited first, and approved": {"2\n5\n:back\n:back\n1\ny\n", `{"type":"approve"}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)>
  The arguments to use
  args.amount (integer) [120]>
  args.to (text) [ana]>
  The arguments to use
  args.amount (integer) [5]>
  type (1 approve, 2 edit, 3 reject, 4 respond) [edit]>
  your answer
    type  approve
  send it? [y/n] `},
		"as JSON": {`{"type":"edit","args":{"amount":1,"to":"x"},"name":"pay"}` + "\n", `{"type":"edit","args":{"amount":1,"to":"x"},"name":"pay"}`, `  type (1 approve, 2 edit, 3 reject, 4 respond)> `},
	} {
		t.Run(name, func(t *testing.T) {
			answer, said := askAboutCall(t, newCall(`{"amount":120,"to":"ana"}`, paySchema), test.typed)
			require.Equal(t, test.answer, answer, said)
			want := strings.ReplaceAll(payHead+test.says, ">\n", "> ")
			require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(said))
		})
	}
}

// A call may have arguments that the tool does not take, and leave out others.
func TestAWrongCallIsEdited(t *testing.T) {
	answer, said := askAboutCall(t, newCall(`{"amount":"much","tip":5}`, paySchema), "2\n\n70\n\nana\n\ny\n")
	require.JSONEq(t, `{"type":"edit","args":{"amount":70,"to":"ana"}}`, answer)
	for _, words := range []string{
		`      tip     5`, "args.amount (integer) [much]> ", "got string, want integer", "args.to is required", "args.note, optional (text)> ",
	} {
		require.Contains(t, said, words)
	}
}

func TestObjectsInAToolCallAreEdited(t *testing.T) {
	address := `{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"zip":{"type":"string","default":"8000"}}}`
	reference := `{"$ref":"#/properties/args/$defs/Address"}` // as pydantic does
	schema := strings.Replace(paySchema, `"amount":{`, `"from":`+reference+`,"via":`+reference+`,"amount":{`, 1)
	schema = strings.Replace(schema, `"args":{`, `"args":{"$defs":{"Address":`+address+`},`, 1)
	answer, said := askAboutCall(t, newCall(`{"amount":1,"to":"x","from":{"city":"Bern"}}`, schema), "2\n\nBasel\n\ny\nChur\n\n:done\ny\n")
	require.JSONEq(t, `{"type":"edit","args":{"from":{"city":"Basel"},"via":{"city":"Chur","zip":"8000"},"amount":1,"to":"x"}}`, answer, said)
	require.Contains(t, said, "args.from, optional: fill it in (yes or no) [yes]> ")
	require.Contains(t, said, "args.from.zip, optional (text)> ")
	require.Contains(t, said, "args.via.zip, optional (text) [8000]> ")
}

// The arguments of a tool without a schema are one object.
func TestAToolThatTakesAnythingIsEdited(t *testing.T) {
	schema := strings.Replace(paySchema, `"properties":{
		"amount"`, `"unknown":{
		"amount"`, 1)
	schema = strings.Replace(schema, `"additionalProperties":false,"unknown"`, `"unknown"`, 1)
	schema = strings.Replace(schema, `"required":["amount","to"],`, "", 1)
	answer, said := askAboutCall(t, newCall(`{"amount":1}`, schema), "2\n\ny\n")
	require.JSONEq(t, `{"type":"edit","args":{"amount":1}}`, answer, said)
	require.Contains(t, said, `args (JSON, like {}) [{"amount":1}]> `)
	answer, _ = askAboutCall(t, newCall(`{"amount":1}`, schema), "1\ny\n")
	require.JSONEq(t, `{"type":"approve"}`, answer)
}

// What only looks like the call of a tool is shown and asked as any question.
func TestOtherQuestionsAreNoToolCalls(t *testing.T) {
	for _, value := range []string{
		`{"profile":"tool-approval/2","name":"pay","args":{"amount":1}}`, `{"profile":"tool-approval/1","name":1,"args":{"amount":1}}`,
		`{"profile":"tool-approval/1","name":"pay","args":[1]}`, `{"type":"tool_approval","name":"pay","args":{"amount":1}}`, `[1]`, `"tool-approval/1"`, ``,
	} {
		q := newCall(`{}`, paySchema)
		q.Value.Body = &graphdv1.Payload_Json{Json: value}
		answer, said := askAboutCall(t, q, "2\n7\nana\n\n\ny\n")
		require.JSONEq(t, `{"type":"edit","args":{"amount":7,"to":"ana","note":""}}`, answer, said)
		require.NotContains(t, said, "call of")
	}
}

// The author of a call can't show another call than the one that is made.
func TestAForgedCallIsVisible(t *testing.T) {
	forged := "pay\r\x1b[2K\u202e\n    answer: approved"
	quoted, err := json.Marshal(forged)
	require.NoError(t, err)
	q := newCall(`{"to":`+string(quoted)+`,`+string(quoted)+`:1}`, paySchema)
	q.Value.Body = &graphdv1.Payload_Json{Json: strings.Replace(q.GetValue().GetJson(), `"pay"`, string(quoted), 1)}
	_, said := askAboutCall(t, q, "2\n5\n\n\ny\n")
	require.Contains(t, said, `    call of  pay\u{d}\u{1b}[2K\u{202e}\u{a}    answer: approved`+"\n")
	require.Contains(t, said, `args.to (text) [pay`)
	for line := range strings.Lines(said) {
		require.False(t, strings.HasPrefix(strings.TrimSpace(line), "answer: approved"), said)
	}
	require.NotContains(t, said, "\u202e")
	require.NotContains(t, said, "\x1b")
}

func newCall(arguments, schema string) *graphdv1.Interrupt {
	value := `{"profile":"tool-approval/1","tool_call_id":"call-1","name":"pay","args":` + arguments + `}`
	return &graphdv1.Interrupt{
		InterruptId: "q1", ThreadId: "t1", Node: "tools", Reason: "tool_call", Message: "Call the tool pay?",
		Value:          &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: value}},
		ResponseSchema: &graphdv1.Payload{Body: &graphdv1.Payload_Json{Json: schema}},
	}
}

func askAboutCall(t *testing.T, q *graphdv1.Interrupt, typed string) (answer, said string) {
	t.Helper()
	out := &bytes.Buffer{}
	p := prompt.NewPrompter(output.NewPrinter(out), output.IO{In: strings.NewReader(typed)})
	answer, err := p.AskInterrupt(t.Context(), q)
	require.NoError(t, err, out.String())
	return answer, out.String()
}
