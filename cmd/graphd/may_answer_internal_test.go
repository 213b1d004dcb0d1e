package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// twoTeamsGraph asks finance and staff at once.
const twoTeamsGraph = `graph: teams
channels: {paid: {}, sent: {}}
nodes:
  pay: {ask: {message: "'Pay?'", schema: {type: boolean}, people: {groups: [finance]}, update: {paid: answer}}}
  send: {ask: {message: "'Send?'", schema: {type: boolean}, people: {groups: [staff], not_requester: true}, update: {sent: answer}}}
edges:
- START -> [pay, send]
`

// Nobody is asked for an answer that the server would refuse. Of several questions each person
// answers those for them.
func TestATerminalAsksWhomAQuestionIsFor(t *testing.T) {
	s := startPeopleServer(t)
	_, err := graphdv1.NewRegistryServiceClient(s.conn).PutGraph(s.as(t, "eva"), putRequest(twoTeamsGraph))
	require.NoError(t, err)
	s.start(t, "teams", "t", `{}`)
	resume := func(caller, typed string) commandResult {
		t.Helper()
		c := s.commands
		c.isTerminal, c.stdin = true, typed
		return c.runCommand(t, "resume", "t", "--token", s.tokens[caller])
	}

	r := resume("carl", "y\ny\n")
	require.Equal(t, exit.CodeError, r.code)
	require.Contains(t, r.err, "rule: group")
	require.NotContains(t, r.out, "Pay?", "carl is not asked in vain")

	r = resume("ana", "y\n")
	require.Equal(t, exit.CodeWaiting, r.code, r.err)
	require.Contains(t, r.out, "Pay?")
	require.Equal(t, 1, strings.Count(r.out, "answer (yes or no)> "), r.out)
	require.Contains(t, r.err, "not asked: ")

	r = resume("ben", "n\n")
	require.Equal(t, exit.CodeDone, r.code, r.err)
	require.NotContains(t, r.err, "not asked")
}
