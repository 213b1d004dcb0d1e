package graphfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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
      SECRET
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
		secret  string
		plain   bool // the server does not encrypt its records
	}{
		"secret parts":               {people: "reveal: {users: [ana], groups: [audit]}", secret: "secret: [/card, /owner/pin]"},
		"the whole":                  {people: "groups: [finance]", secret: "secret: ['']"},
		"no pointer":                 {people: "groups: [finance]", secret: "secret: [card]", problem: "line 9: nodes.review.ask.secret[0]: \"card\" is no JSON pointer"},
		"an overlap":                 {people: "groups: [finance]", secret: "secret: [/a/b, /a]", problem: "nodes.review.ask.secret[1]"},
		"no keys":                    {people: "groups: [finance]", secret: "secret: [/a]", plain: true, problem: "line 9: nodes.review.ask.secret: the store of the server is not encrypted"},
		"nothing to reveal":          {people: "reveal: {users: [ana]}", problem: "line 8: nodes.review.ask.people.reveal: the question has no secret parts"},
		"revealers of nobody known":  {people: "reveal: {users: [ana]}", secret: "secret: [/a]", open: true, problem: "does not know who calls"},
		"a revealer twice":           {people: "reveal: {users: [ana, ana]}", secret: "secret: [/a]", problem: "nodes.review.ask.people.reveal.users[1]"},
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
			text := strings.NewReplacer("PEOPLE", c.people, "SECRET", c.secret).Replace(askPeople)
			spec, positions, err := graphfile.Parse("refund.yaml", []byte(text))
			if err == nil {
				_, err = graph.Compile(spec, graph.Env{
					Expressions: expressions, CheckCondition: conditions.Check, HasNoCallers: c.open, HasNoKeys: c.plain, Line: positions.Line,
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

const askWithSteps = `graph: refund
channels: {amount: {}}
nodes:
  review:
    ask:
      message: "'Refund?'"
      people: {groups: [finance]}
      STEPS
edges: [START -> review -> END]
`

// Steps are read with the one that ends the question, and what is wrong is said with its line.
func TestSteps(t *testing.T) {
	expressions, err := expr.New(expr.Options{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		steps   string
		want    graph.AskSpec
		problem string
	}{
		"all": {
			steps: "priority: high\n      steps:\n      - {after: 30m, remind: {}}\n      - {after: 70m, escalate: {groups: [board], users: [eva], priority: urgent}}\n      - {after: 3h, default: 5}",
			want: graph.AskSpec{
				Priority: "high", TTL: 3 * time.Hour, Expiry: "resume_default", Default: "5",
				Steps: []graph.StepSpec{
					{After: 30 * time.Minute},
					{After: 70 * time.Minute, Escalates: true, Users: []string{"eva"}, Groups: []string{"board"}, Priority: "urgent"},
				},
			},
		},
		"fails":                 {steps: "steps: [{after: 3h, fail: true}]", want: graph.AskSpec{TTL: 3 * time.Hour, Expiry: "fail_node"}},
		"cancels":               {steps: "steps: [{after: 3h, cancel: true}]", want: graph.AskSpec{TTL: 3 * time.Hour, Expiry: "cancel_run"}},
		"an expiry of its own":  {steps: "ttl: 3h\n      steps: [{after: 1h, remind: {}}]", want: graph.AskSpec{TTL: 3 * time.Hour, Steps: []graph.StepSpec{{After: time.Hour}}}},
		"two ends":              {steps: "ttl: 3h\n      steps: [{after: 1h, fail: true}]", problem: "line 9: nodes.review.ask.steps[0]: the question has ttl, expiry or default as well"},
		"a step after the end":  {steps: "steps: [{after: 1h, fail: true}, {after: 2h, remind: {}}]", problem: "nodes.review.ask.steps[1]: comes after the step that ends the question"},
		"nothing":               {steps: "steps: [{after: 1h}]", problem: "nodes.review.ask.steps[0]: a step has one of remind, escalate, default, fail and cancel; this one has 0"},
		"two actions":           {steps: "steps: [{after: 1h, remind: {}, fail: true}]", problem: "this one has 2"},
		"a normal escalation":   {steps: "steps: [{after: 1h, escalate: {priority: normal}}]", problem: "nodes.review.ask.steps[0].priority: an escalation makes nothing normal"},
		"a false end":           {steps: "steps: [{after: 1h, fail: false}]", problem: "fail is false; leave the step out"},
		"no time":               {steps: "steps: [{remind: {}}]", problem: "nodes.review.ask.steps[0].after: is 0s; want more than 0s"},
		"backwards":             {steps: "steps: [{after: 2h, remind: {}}, {after: 1h, fail: true}]", problem: "nodes.review.ask.steps[0].after: is 2h0m0s; want less than the 1h0m0s"},
		"to nobody":             {steps: "steps: [{after: 1h, escalate: {}}]", problem: "escalates to no one"},
		"an unknown priority":   {steps: "priority: soon", problem: `line 8: nodes.review.ask.priority: unknown priority "soon"`},
		"an urgent reminder":    {steps: "steps: [{after: 1h, remind: {priority: high}}]", problem: "a reminder changes no priority"},
		"an unknown field":      {steps: "steps: [{after: 1h, remind: {group: finance}}]", problem: `unknown field "group"`},
		"a default that misses": {steps: "steps: [{after: 1h, default: null}]", want: graph.AskSpec{TTL: time.Hour, Expiry: "resume_default", Default: "null"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, positions, err := graphfile.Parse("refund.yaml", []byte(strings.Replace(askWithSteps, "STEPS", c.steps, 1)))
			if err == nil {
				_, err = graph.Compile(spec, graph.Env{Expressions: expressions, Line: positions.Line})
			}
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem)
				return
			}
			require.NoError(t, err)
			ask := *spec.Nodes[0].Ask
			ask.Message, ask.People = "", nil
			require.Equal(t, c.want, ask)
		})
	}
}
