package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// A person hands the input of a run in without writing JSON.
func TestRunAsksForItsInput(t *testing.T) {
	c := startServer(t, "memory")
	c.isTerminal, c.stdin = true, "\nWhere is my parcel?\n:done\n7\ny\n"
	r := c.runCommand(t, "run", "refund-review", "--thread", "t", "--ask")
	require.Equal(t, exit.CodeDone, r.code, r.out+r.err)
	for _, words := range []string{
		"  Recognises a refund request, asks a person", "user_request (text)> ", "user_request is required",
		"user_id is missing", "succeeded",
	} {
		require.Contains(t, r.out, words)
	}
	state := c.runCommand(t, "state", "t", "-o", "json").out
	require.Contains(t, state, `"user_id": 7`)
	require.Contains(t, state, `"user_request": "Where is my parcel?"`)

	c.stdin = "Where is my parcel?\n:quit\n"
	r = c.runCommand(t, "run", "refund-review", "--thread", "left", "--ask")
	require.Equal(t, exit.CodeError, r.code)
	require.Contains(t, r.err, "no run was started")
	require.NotContains(t, c.runCommand(t, "threads").out, "left")

	c.isTerminal = false
	require.Contains(t, c.runCommand(t, "run", "refund-review", "--ask").err, "--ask asks at a terminal")
	require.Contains(t, c.runCommand(t, "run", "refund-review", "--ask", "--input", "{}").err, "[ask input]")
}
