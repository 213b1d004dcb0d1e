package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// An operator who says how much memory there is has the last word.
func TestGOMEMLIMITIsRespectedAndLogged(t *testing.T) {
	path, err := binary()
	require.NoError(t, err)
	log := newLockedBuffer()
	serve := execIn(t.TempDir(), path, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json")
	serve.Env = append(os.Environ(), "GOMEMLIMIT=345MiB")
	serve.Stderr = log
	require.NoError(t, serve.Start())
	found := log.find(t, regexp.MustCompile(`"memory limit","bytes":(\d+)`))
	require.Equal(t, "361758720", found)
	require.NoError(t, serve.Process.Signal(os.Interrupt))
	require.NoError(t, serve.Wait())
}
