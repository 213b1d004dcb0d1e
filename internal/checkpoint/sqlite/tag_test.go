package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

func TestTagsUnderKeys(t *testing.T) {
	dir := t.TempDir()
	checkpointtest.RunTagsUnderKeys(t, func(t *testing.T, options seal.Options) checkpointtest.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "a.db"), Seal: options})
		require.NoError(t, err)
		return s
	}, func(t *testing.T) string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		var all strings.Builder
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all.Write(text)
		}
		return all.String()
	})
}
