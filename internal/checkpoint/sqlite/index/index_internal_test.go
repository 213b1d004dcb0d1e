package index

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/setup"
)

// TestQuestionsOfAThreadAreFoundByIt asks SQLite how it finds the interrupts of
// one thread: not among those of all threads.
func TestQuestionsOfAThreadAreFoundByIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graphd.db")
	db, err := file.ConnectWriter(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.NoError(t, setup.PrepareSchema(t.Context(), db, path))
	open := []checkpoint.InterruptState{checkpoint.InterruptOpen}
	for _, q := range []checkpoint.InterruptQuery{
		{},
		{States: open, Limit: 10},
		{States: append(open, checkpoint.InterruptAnswered), Run: "r"},
		{ByChange: true, After: checkpoint.InterruptPosition{Change: 7}},
		{After: checkpoint.InterruptPosition{Created: time.Unix(7, 0), Thread: "t", ID: "q"}},
	} {
		q.Thread = "t"
		statement, args := buildInterruptQuery(&q)
		var id, parent, unused int
		var plan string
		require.NoError(t, db.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, args...).
			Scan(&id, &parent, &unused, &plan))
		require.Contains(t, plan, "SEARCH interrupts USING PRIMARY KEY (thread=?", statement)
	}
}
