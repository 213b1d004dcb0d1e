package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

const payGraph = `graph: pay
drift: DRIFT
channels: { pay: {}, ok: {} }
nodes: { ask: { ask: { message: "'Pay?'", value: { pay: state.pay }, update: { ok: answer } } } }
edges: [START -> ask -> END]
`

// TestADriftIsSeenAndLeadsOn answers an interrupt that differs when the node runs
// again, and runs the commands that graphd then prints.
func TestADriftIsSeenAndLeadsOn(t *testing.T) {
	c := startServer(t, "memory")
	answer := func(drift string) commandResult {
		file := filepath.Join(t.TempDir(), "pay.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(payGraph, "DRIFT", drift)), 0o600))
		require.Zero(t, c.runCommand(t, "graph", "put", file).code)
		require.Equal(t, exit.CodeWaiting, c.runCommand(t, "run", "pay", "--thread", drift, "--input", `{"pay":100}`).code)
		return c.runCommand(t, "resume", drift, "--value", "true", "--update", `{"pay":99999}`)
	}
	r := answer("fail")
	require.Equal(t, exit.CodeFailed, r.code)
	require.Contains(t, r.out, "the one that was answered: /pay: 100 → 99999. ")
	command := regexp.MustCompile(`graphd (run pay@sha-[0-9a-f]+ --thread fail --from-checkpoint \S+) --server`).FindStringSubmatch(r.out)
	require.NotEmpty(t, command, r.out)
	require.Equal(t, exit.CodeFailed, c.runCommand(t, "run", "pay", "--thread", "fail").code)
	r = c.runCommand(t, strings.Fields(command[1])...)
	require.Equal(t, exit.CodeWaiting, r.code, r)
	require.Contains(t, r.out, "pay  99999")
	require.Zero(t, c.runCommand(t, "resume", "fail", "--value", "true").code)

	r = answer("ask_again")
	require.Equal(t, exit.CodeWaiting, r.code)
	for _, shown := range []string{
		r.out, c.runCommand(t, "inbox", "--thread", "ask_again").out, c.runCommand(t, "state", "ask_again").out,
		c.runCommand(t, "watch", "ask_again", "--no-follow").out,
	} {
		require.Contains(t, shown, "differs from what was answered with true\n      /pay  100 → 99999\n")
	}

	r = answer("accept")
	require.Zero(t, r.code)
	for _, shown := range []string{
		r.out, c.runCommand(t, "inbox", "--thread", "accept", "--filter", `state = "*"`).out,
		c.runCommand(t, "watch", "accept", "--no-follow").out,
	} {
		require.Regexp(t, `accepted.*\n?.*for what the node asked later, which differs: /pay\n`, shown)
	}
}
