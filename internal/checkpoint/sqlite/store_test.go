package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

func TestContract(t *testing.T) {
	checkpointtest.Run(t, func(t *testing.T, now func() time.Time) checkpointtest.Store {
		t.Helper()
		s, err := sqlite.Open(t.Context(), sqlite.Options{
			Path: filepath.Join(t.TempDir(), "a b%3f#.db"), Now: now, Tombstones: checkpointtest.Tombstones,
		})
		require.NoError(t, err)
		return s
	})
}
