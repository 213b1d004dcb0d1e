package graphfile_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
)

const askPeople = `graph: refund
channels: {amount: {}, team: {}}
nodes:
  review:
    ask:
      message: "'Refund?'"
      people:
        PEOPLE
edges: [START -> review -> END]
`

// What is wrong with a policy is said with its line, when the graph is put.
func TestPeople(t *testing.T) {
	expressions, err := expr.New(expr.Options{})
	require.NoError(t, err)
	conditions, err := expr.NewConditions(expr.Options{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		people  string
		open    bool // the server knows no callers
		problem string
	}{
		"names":                      {people: "groups: [finance]\n        approvals: 2"},
		"expressions":                {people: "users: \"['ana', state.team]\"\n        groups: state.team\n        requester: state.team"},
		"a condition":                {people: "agree: answer.decision != 'rejected'", open: true},
		"a condition over the state": {people: "agree: state.amount > 5", problem: "line 8: nodes.review.ask.people.agree"},
		"no condition":               {people: "agree: \"'yes'\"", problem: "line 8: nodes.review.ask.people.agree: a condition must be true or false"},
		"no approvals":               {people: "approvals: 0", problem: "line 8: nodes.review.ask.people.approvals"},
		"too many vetoes":            {people: "vetoes: 101", problem: "line 8: nodes.review.ask.people.vetoes: is 101; want 1 to 100"},
		"too few people":             {people: "users: [ana]\n        approvals: 2", problem: "is 2, and users names 1"},
		"nobody":                     {people: "groups: []", problem: "the list is empty"},
		"an expression in a list":    {people: "groups: [state.team]", problem: "an expression stands alone: `groups: state.team`"},
		"an unknown key":             {people: "groups: state.nothing", problem: "line 8: nodes.review.ask.people.groups"},
		"a field that is unknown":    {people: "group: finance", problem: `unknown field "group"`},
		"groups of nobody known":     {people: "groups: [finance]", open: true, problem: "line 7: nodes.review.ask.people: the server does not know who calls"},
		"groups that are computed":   {people: "groups: state.team", open: true, problem: "does not know who calls"},
		"not the requester":          {people: "not_requester: true", open: true, problem: "does not know who calls"},
		"two of nobody known":        {people: "approvals: 2", open: true, problem: "does not know who calls"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(askPeople, "PEOPLE", c.people, 1)
			spec, positions, err := graphfile.Parse("refund.yaml", []byte(text))
			if err == nil {
				_, err = graph.Compile(spec, graph.Env{
					Expressions: expressions, CheckCondition: conditions.Check, HasNoCallers: c.open, Line: positions.Line,
				})
			}
			if c.problem == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			problems, ok := errors.AsType[*graph.BuildError](err)
			require.True(t, ok, "%v", err)
			require.Len(t, problems.Problems, 1, "%v", err)
			require.ErrorContains(t, err, c.problem)
		})
	}
}
