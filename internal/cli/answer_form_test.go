package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/form"
)

// The description of a question's schema, and the answer that can be pasted.
func TestAQuestionOffersAnAnswerThatFits(t *testing.T) {
	for schema, want := range map[string]struct{ describe, example string }{
		`{"type": "integer", "minimum": 1, "maximum": 15}`: {"integer from 1 to 15", "1"},
		`{"type": "number", "maximum": -0.5}`:              {"number up to -0.5", "-0.5"},
		`{"type": "integer"}`:                              {"integer", "0"},
		`{"type": "string"}`:                               {"text", `"..."`},
		`{"type": "array"}`:                                {"list", "[]"},
		`{"type": "boolean"}`:                              {"true | false", "true"},
		`{"enum": [3, 4]}`:                                 {"3 | 4", "3"},
		`{"type": "object", "required": ["days", "why"], "properties": {
			"days": {"type": "integer", "minimum": 2}, "why": {"type": "string"}, "by": {}}}`: {
			"days: integer from 2, why, by?", `{"days":2,"why":"..."}`,
		},
		`{"type": "object", "required": ["to"], "properties": {"to": {"type": "object", "required": ["n"], "properties": {
			"n": {"type": "integer"}}}}}`: {"to", `{"to":{"n":0}}`},
		`{"type": "array", "minItems": 2, "items": {"enum": ["a", "b"]}}`: {"list", `["a","a"]`},
		`{"oneOf": [{"not": {}}, {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}]}`: {
			"ok: true | false", `{"ok":true}`,
		},
		`{"not": {"type": "boolean"}}`: {"as its schema says, see -o json", "JSON"},
		// Those of add_human_in_the_loop.
		reviewSchema("accept", "edit", "ignore"): {"type: accept | edit | ignore, args?", `{"type":"accept"}`},
		reviewSchema("edit", "response"):         {"type: edit | response, args?", `{"type":"response"}`},
		reviewSchema("edit"):                     {"type: edit, args?", `{"type":"edit","args":{}}`},
	} {
		q := &graphdv1.Interrupt{InterruptId: "1", ThreadId: "t1", Node: "n", ResponseSchema: newPayload(schema)}
		s := &scriptedServer{interrupts: []*graphdv1.Interrupt{q}, calls: []scriptedCall{{events: []*graphdv1.Event{
			openedEvent(),
			withCursor(1, &graphdv1.Event{Kind: &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{
				Interrupts: []*graphdv1.Interrupt{q},
			}}}),
			endEvent(stopped, 2, graphdv1.RunState_RUN_STATE_INTERRUPTED),
		}}}}
		c, out := newSession(t, s, "")
		require.Equal(t, exit.CodeWaiting, exit.CodeOf(c.Run(t.Context(), cli.RunOptions{Graph: "g"})))
		require.Contains(t, out.String(), "    answer  "+want.describe+"\n")
		require.Contains(t, out.String(), "\n  graphd resume t1\n", "no answer is proposed")
		require.Equal(t, want.example, form.ParseSchema(schema).ExampleText(), schema)
	}
}

// reviewSchema returns the schema of the review of a tool call.
func reviewSchema(kinds ...string) string {
	one := `{"type":"object","required":["type"],"properties":{"type":{"enum":["` + strings.Join(kinds, `","`) + `"]},"args":{}},
		"if":{"properties":{"type":{"const":"edit"}}},"then":{"required":["args"],"properties":{"args":{"type":"object"}}}}`
	return `{"if":{"type":"array"},"then":{"minItems":1,"maxItems":1,"items":` + one + `},"else":` + one + `}`
}
