// Package upgrade_test reads with today's graphd what earlier ones have stored.
package upgrade_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/tests/harness"
)

// waitTimeout bounds what must not hang.
const waitTimeout = 2 * time.Minute

// TestMain lets all tests run at the same time: each mostly waits for the leases of
// the processes that wrote its store.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// server is a graphd of its own process.
type server struct {
	*harness.Server

	tb testing.TB
}

// startServer starts a program on a store and waits until it serves.
func startServer(tb testing.TB, program, store string, more ...string) *server {
	tb.Helper()
	return &server{harness.StartServer(tb, []string{program}, store, append([]string{
		"--checkpoints", "all", "--worker-beat", "500ms", "--worker-lease", "5s", // for so long the tasks of gone workers wait
	}, more...)...), tb}
}

// runCommand runs a program to its end and returns what it said.
func runCommand(tb testing.TB, program string, args ...string) (code int, said string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), waitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(tb, err)
	}
	require.NotContains(tb, string(out), "%!", "a verb does not fit its argument")
	return cmd.ProcessState.ExitCode(), string(out)
}
