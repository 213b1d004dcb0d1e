package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

// BenchmarkParkedThread writes threads that wait for a person, like one of a frozen
// store, and measures what each of them takes in the file.
func BenchmarkParkedThread(b *testing.B) {
	dir := b.TempDir()
	source := filepath.Join(dir, "source.db")
	restoreFrozen(b, "sqlite-3", source)
	_, err := migrateFile(b.Context(), source, ignoreProgress)
	require.NoError(b, err)
	from, err := sqlite.Open(b.Context(), sqlite.Options{Path: source})
	require.NoError(b, err)
	defer func() { require.NoError(b, from.Close()) }()
	c := readWholeThread(b, from, "waiting")

	path := filepath.Join(dir, "parked.db")
	s, err := sqlite.Open(b.Context(), sqlite.Options{Path: path, Reserve: -1})
	require.NoError(b, err)
	b.ReportAllocs()
	threads := 0
	for b.Loop() {
		c.Thread = fmt.Sprintf("thread-%08d", threads)
		c.Head.Thread, c.Runs[0].Thread, c.Interrupts[0].Thread = c.Thread, c.Thread, c.Thread
		_, err := s.Apply(b.Context(), c)
		require.NoError(b, err)
		threads++
	}
	require.NoError(b, s.Close())
	info, err := os.Stat(path)
	require.NoError(b, err)
	b.ReportMetric(float64(info.Size())/float64(threads), "bytes/thread")
}

// readWholeThread makes the change that writes a thread anew.
func readWholeThread(b *testing.B, s *sqlite.Store, thread string) *checkpoint.Change {
	b.Helper()
	ctx := b.Context()
	c := &checkpoint.Change{IsCopy: true}
	var err error
	c.Head, err = s.Head(ctx, thread)
	require.NoError(b, err)
	c.Checkpoints, err = s.Checkpoints(ctx, checkpoint.CheckpointQuery{Thread: thread, AllNamespaces: true})
	require.NoError(b, err)
	slices.Reverse(c.Checkpoints)
	p, err := s.Pending(ctx, thread, c.Head.Checkpoint)
	require.NoError(b, err)
	c.Tasks, c.Memos, c.Interrupts = p.Tasks, p.Memos, p.Interrupts
	c.Runs, err = s.Runs(ctx, thread, 0, 0)
	require.NoError(b, err)
	c.Events, err = s.Events(ctx, thread, 0, 0)
	require.NoError(b, err)
	return c
}
