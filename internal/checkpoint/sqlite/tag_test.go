package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
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

// TestAQuestionThatMovedComesOnce has a row of the time that a question was due before, as a list
// reads it while the question is extended.
func TestAQuestionThatMovedComesOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := openStore(t, path)
	day := time.Date(2026, 1, 1, 0, 0, 0, 7, time.UTC)
	for i, due := range []int{9, 5} {
		in := checkpoint.Interrupt{
			ID: "q", Thread: fmt.Sprint("t", i), Graph: "g", State: checkpoint.InterruptOpen, Created: day, Expires: day.Add(time.Duration(due) * time.Hour),
		}
		_, err := s.Apply(t.Context(), &checkpoint.Change{
			Thread: in.Thread, Head: checkpoint.Head{Thread: in.Thread, Updated: day}, Interrupts: []checkpoint.Interrupt{in},
		})
		require.NoError(t, err)
	}
	execSQL(t, openDirectly(t, path), `UPDATE interrupt_tags SET due = 1 WHERE thread = 't0' AND tag = ''`)
	found, err := s.Interrupts(t.Context(), checkpoint.InterruptQuery{Tenant: "default", States: openStates, ByDue: true, Limit: 1})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "t1", found[0].Thread, "the one that is due next by its record")
}
