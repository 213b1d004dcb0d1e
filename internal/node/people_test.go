package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/node"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// askIn runs a node of kind ask over the state {"team": …}.
func askIn(t *testing.T, ask, team string) pregel.Result {
	t.Helper()
	g := compileGraph(t, "graph: g\nchannels: {team: {}}\nnodes: {n: {ask: {message: \"'?'\", "+ask+"}}}\nedges: [START -> n -> END]\n")
	return node.New(nil, node.Options{}).Execute(t.Context(), newTask(t, g, payload.JSON(`{"team": `+team+`}`)))
}

func TestPeopleOfAsk(t *testing.T) {
	for name, c := range map[string]struct {
		ask, team string
		want      approval.Policy
		fails     string
	}{
		"names": {
			ask: "people: {users: [ana], groups: [finance, ops], approvals: 2, vetoes: 3, agree: answer, not_requester: true}", team: "null",
			want: approval.Policy{Users: []string{"ana"}, Groups: []string{"finance", "ops"}, Approvals: 2, Vetoes: 3, Agree: "answer", NotRequester: true},
		},
		"a name of the state":         {ask: "people: {groups: state.team, requester: state.team}", team: `"ops"`, want: approval.Policy{Groups: []string{"ops"}, Requester: "ops"}},
		"names of the state":          {ask: "people: {users: state.team}", team: `["a", "b"]`, want: approval.Policy{Users: []string{"a", "b"}}},
		"nobody of two":               {ask: "people: {users: state.team, groups: [ops]}", team: `null`, want: approval.Policy{Groups: []string{"ops"}}},
		"nobody":                      {ask: "people: {users: state.team}", team: `null`, fails: "yield no name"},
		"nobody in a list":            {ask: "people: {groups: state.team, approvals: 2}", team: `[]`, fails: "yield no name"},
		"a number":                    {ask: "people: {users: state.team}", team: `5`, fails: "must yield a name or a list of names, not 5"},
		"a number in a list":          {ask: "people: {users: state.team}", team: `["a", 5]`, fails: `must yield a name or a list of names, not ["a", 5]`},
		"a requester of another kind": {ask: "people: {not_requester: true, requester: state.team}", team: `{"name":"eva"}`, fails: "people.requester"},
		"no requester":                {ask: "people: {not_requester: true, requester: state.team}", team: `null`, fails: "must yield the name of one caller"},
		"an empty requester":          {ask: "people: {not_requester: true, requester: state.team}", team: `""`, fails: "must yield the name of one caller"},
		"nobody that should":          {ask: "assignees: state.team", team: `null`},
		"no name that should":         {ask: "assignees: state.team", team: `{}`, fails: "assignees"},
		"nothing of the policy":       {ask: "assignees: [ana]", team: `null`},
	} {
		t.Run(name, func(t *testing.T) {
			r := askIn(t, c.ask, c.team)
			if c.fails != "" {
				require.NotNil(t, r.Failure)
				require.Contains(t, r.Failure.Message, c.fails)
				return
			}
			require.Nil(t, r.Failure)
			require.Len(t, r.Asks, 1)
			require.True(t, c.want.Equal(r.Asks[0].Policy), "%+v", r.Asks[0].Policy)
		})
	}
}

func TestTimesOfAsk(t *testing.T) {
	for name, c := range map[string]struct {
		ask, team string
		ttl       time.Duration
		answer    payload.JSON
		fails     string
	}{
		"a duration":          {ask: "ttl: 30m", team: "null", ttl: 30 * time.Minute},
		"days":                {ask: "ttl: 3d", team: "null", ttl: 72 * time.Hour},
		"a part of an hour":   {ask: "ttl: 1.5h", team: "null", ttl: 90 * time.Minute},
		"a text of the state": {ask: "ttl: state.team", team: `"2d"`, ttl: 48 * time.Hour},
		"seconds":             {ask: "ttl: state.team", team: `90`, ttl: 90 * time.Second},
		"parts of seconds":    {ask: "ttl: state.team", team: `0.5`, ttl: 500 * time.Millisecond},
		"for ever":            {ask: "ttl: state.team", team: `null`},
		"a choice":            {ask: "ttl: \"state.team ? '1h' : '2h'\"", team: `true`, ttl: time.Hour},
		"no time":             {ask: "ttl: state.team", team: `0`, fails: "ttl: must yield more than 0s"},
		"a time before now":   {ask: "ttl: state.team", team: `"-1h"`, fails: "ttl: must yield more than 0s"},
		"too long":            {ask: "ttl: state.team", team: `1e300`, fails: "ttl: must yield at most"},
		"too long a number":   {ask: "ttl: state.team", team: `1e999999`, fails: "ttl: must yield at most"},
		"no duration":         {ask: "ttl: state.team", team: `"soon"`, fails: "ttl: must yield a duration like 30m"},
		"another kind":        {ask: "ttl: state.team", team: `{}`, fails: "ttl: must yield a duration like 30m, a number of seconds, or null, not {}"},
		"a default of the state": {
			ask: "ttl: 1h, expiry: resume_default, default_expr: '{\"who\": state.team}'", team: `9007199254740993`, ttl: time.Hour,
			answer: `{"who":9007199254740993}`,
		},
		"a default that fails": {ask: "ttl: 1h, expiry: resume_default, default_expr: state.team.x", team: `1`, fails: "default_expr: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := askIn(t, c.ask, c.team)
			if c.fails != "" {
				require.NotNil(t, r.Failure)
				require.Contains(t, r.Failure.Message, c.fails)
				return
			}
			require.Nil(t, r.Failure)
			require.Equal(t, c.ttl, r.Asks[0].TTL)
			require.Equal(t, c.answer, r.Asks[0].Default)
		})
	}
}
