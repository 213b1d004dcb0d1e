package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli"
)

// What a question shows of its schema, and the answer it offers to copy.
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
	} {
		q := &graphdv1.Interrupt{InterruptId: "1", ThreadId: "t1", Node: "n", ResponseSchema: text(schema)}
		s := &stage{questions: []*graphdv1.Interrupt{q}, plays: []play{{events: []*graphdv1.Event{
			opened(),
			at(1, &graphdv1.Event{Kind: &graphdv1.Event_Interrupt{Interrupt: &graphdv1.InterruptRaised{
				Interrupts: []*graphdv1.Interrupt{q},
			}}}),
			ended(stopped, 2, graphdv1.RunState_RUN_STATE_INTERRUPTED),
		}}}}
		c, out := session(t, s, "")
		require.Equal(t, cli.ExitWaiting, cli.ExitCode(c.Run(t.Context(), cli.RunOptions{Graph: "g"})))
		require.Contains(t, out.String(), "    answer  "+want.describe+"\n")
		require.Contains(t, out.String(), " --value "+cli.CommandLine(want.example)+"\n", schema)
	}
}
