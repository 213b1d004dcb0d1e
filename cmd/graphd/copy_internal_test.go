package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
)

// TestThreadsAreCopied answers the interrupt of a thread and of its copy, on
// another server than it was asked on.
func TestThreadsAreCopied(t *testing.T) {
	store := redistest.Start(t).URL("")
	c, other := startServer(t, store), startServer(t, store)
	r := c.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput)
	require.Equal(t, 3, r.code, r.err)
	for range 2 {
		r = c.runCommand(t, "threads", "copy", "t1", "t2", "--request-id", "once")
		require.Equal(t, 0, r.code, r.err)
		require.Equal(t, "thread t2 is a copy of t1, interrupted\n", r.out)
	}
	r = c.runCommand(t, "threads", "copy", "t1", "t2")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "THREAD_EXISTS")
	require.Equal(t, c.runCommand(t, "history", "t1").out, other.runCommand(t, "history", "t2").out)

	r = other.runCommand(t, "resume", "t2", "--value", `{"decision": "rejected", "reason": "too late"}`)
	require.Equal(t, 0, r.code, r.err)
	r = other.runCommand(t, "resume", "t1", "--value", `{"decision": "approved"}`)
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "Your refund has been approved")
	require.NotContains(t, c.runCommand(t, "state", "t2").out, "Your refund has been approved")
	requireLinear(t, c, "t1", 5)
	requireLinear(t, c, "t2", 5)
	r = other.runCommand(t, "threads", "prune", "t1", "--keep", "2")
	require.Equal(t, "pruned t1\n", r.out, r.err)
	r = c.runCommand(t, "history", "t1", "-o", "jsonl")
	require.Equal(t, 2, strings.Count(r.out, "\n"), r.out)
	require.Equal(t, 0, c.runCommand(t, "threads", "delete", "t1").code)
	require.Contains(t, c.runCommand(t, "state", "t2").out, "too late")
}
