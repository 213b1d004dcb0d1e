package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCronsInATerminal makes, shows, pauses and deletes a cron.
func TestCronsInATerminal(t *testing.T) {
	c := startServer(t, "memory")
	r := c.runCommand(t, "crons", "create", "refund-review", "0 9 * * 1-5", "--id", "daily", "--zone", "Europe/Berlin", "--input", refundInput, "--thread-ttl", "1h")
	require.Equal(t, 0, r.code, r.err)
	require.Regexp(t, `^cron daily  fires first at \d{4}-`, r.out)
	r = c.runCommand(t, "crons")
	require.Equal(t, 0, r.code, r.err)
	require.Regexp(t, `daily\s+0 9 \* \* 1-5 Europe/Berlin\s+refund-review\s+-\s+\d{4}-.*\s+-`, r.out)
	r = c.runCommand(t, "crons", "show", "daily")
	require.Equal(t, 0, r.code, r.err)
	require.Contains(t, r.out, "refund")
	require.Equal(t, "cron daily  paused\n", c.runCommand(t, "crons", "pause", "daily").out)
	require.Contains(t, c.runCommand(t, "crons", "show", "daily").out, "paused")
	require.Regexp(t, `^cron daily  fires next at`, c.runCommand(t, "crons", "resume", "daily").out)
	require.Contains(t, c.runCommand(t, "crons", "list", "--graph", "refund-review", "-o", "jsonl").out, `"cronId":"daily"`)
	require.Equal(t, "deleted daily\n", c.runCommand(t, "crons", "delete", "daily").out)
	r = c.runCommand(t, "crons", "show", "daily")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "CRON_NOT_FOUND")
	r = c.runCommand(t, "crons", "create", "refund-review", "@every 1s")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.err, "MINUTE HOUR DAY MONTH WEEKDAY")
	r = c.runCommand(t, "crons", "create", "refund-review", "0 9 * * *", "--end", "soon")
	require.Equal(t, 2, r.code)
}
