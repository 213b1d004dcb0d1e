package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/testkit/built"
)

// An operator's GOMEMLIMIT takes precedence, and a log line reports that there is
// no limit.
func TestGOMEMLIMITIsRespectedAndLogged(t *testing.T) {
	path := built.Graphd(t)
	for limit, says := range map[string]string{
		"345MiB": `("memory limit","bytes":361758720)`,
		"off":    `"msg":"(no memory limit): `,
	} {
		log := newLockedBuffer()
		serve := newCommandIn(t.TempDir(), path, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json")
		serve.Env = append(os.Environ(), "GOMEMLIMIT="+limit)
		serve.Stderr = log
		require.NoError(t, serve.Start())
		log.waitForMatch(t, regexp.MustCompile(says))
		log.waitForMatch(t, regexp.MustCompile(`("serving")`))
		require.NoError(t, serve.Process.Signal(os.Interrupt))
		require.NoError(t, serve.Wait())
	}
}
