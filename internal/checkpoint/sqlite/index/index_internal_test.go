package index

import (
	"database/sql"
	"path/filepath"
	"strings"
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
	db := makeTables(t)
	open := []checkpoint.InterruptState{checkpoint.InterruptOpen}
	for _, q := range []checkpoint.InterruptQuery{
		{},
		{States: open, Limit: 10},
		{States: append(open, checkpoint.InterruptAnswered), Run: "r"},
		{ByChange: true, After: checkpoint.InterruptPosition{Change: 7}},
		{Tenant: "acme", States: open, Limit: 10},
		{Tenant: "acme", ByChange: true},
		{After: checkpoint.InterruptPosition{Created: time.Unix(7, 0), Thread: "t", ID: "q"}},
	} {
		q.Thread = "t"
		statement, args := buildInterruptQuery(&q)
		require.Contains(t, explainQuery(t, db, statement, args), "SEARCH interrupts USING PRIMARY KEY (thread=?", statement)
	}
}

// TestListsOfATenantLookAtNoOther asks SQLite how it finds the threads and interrupts of
// one tenant: it goes to their place in an index and reads them in order, so that those of
// 10,000 other tenants cost nothing.
func TestListsOfATenantLookAtNoOther(t *testing.T) {
	db := makeTables(t)
	open := []checkpoint.InterruptState{checkpoint.InterruptOpen}
	at := checkpoint.InterruptPosition{Created: time.Unix(7, 0), Thread: "acme@t", ID: "q", Change: 7}
	for want, queries := range map[string][]checkpoint.InterruptQuery{
		"SEARCH interrupts USING INDEX interrupts_created (tenant=?": {{}, {Graph: "g"}, {Node: "n", Limit: 10}, {After: at}},
		"SEARCH interrupts USING INDEX interrupts_state (tenant=? AND state=?": {
			{States: open}, {States: open, Assignee: "ann"}, {States: open, After: at, Limit: 10},
		},
		"SEARCH interrupts USING INDEX interrupts_change (tenant=? AND change>?": {{ByChange: true}, {ByChange: true, After: at, Reason: "r"}},
	} {
		for _, q := range queries {
			q.Tenant = "acme"
			statement, args := buildInterruptQuery(&q)
			plan := explainQuery(t, db, statement, args)
			require.Contains(t, plan, want, statement)
			require.NotContains(t, plan, "ORDER BY", "nothing is sorted: %s", statement)
		}
	}
	require.Contains(t, explainQuery(t, db, countThreads, []any{"acme", 10}), "SEARCH threads USING INDEX threads_updated (tenant=?")
	require.Contains(t, explainQuery(t, db, countOpenInterrupts, []any{"acme", 10}),
		"SEARCH interrupts USING INDEX interrupts_state (tenant=? AND state=?")
	q := checkpoint.InterruptQuery{Tenant: "acme", States: append(open, checkpoint.InterruptAnswered)}
	statement, args := buildInterruptQuery(&q)
	require.Contains(t, explainQuery(t, db, statement, args), "(tenant=?", "whichever index it takes")

	for _, q := range []checkpoint.ThreadQuery{
		{},
		{State: checkpoint.ThreadBusy, Graph: "acme@g", Limit: 10},
		{Metadata: map[string]string{"user": "ann"}},
		{Before: checkpoint.ThreadPosition{Updated: time.Unix(7, 0), Thread: "acme@t"}},
	} {
		q.Tenant = "acme"
		statement, args := buildThreadQuery(&q)
		plan := explainQuery(t, db, statement, args)
		require.Contains(t, plan, "SEARCH threads USING INDEX threads_updated (tenant=?", statement)
		require.NotContains(t, plan, "ORDER BY", "nothing is sorted: %s", statement)
	}
}

func makeTables(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "graphd.db")
	db, err := file.ConnectWriter(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, setup.PrepareSchema(t.Context(), db, path))
	return db
}

// explainQuery returns how SQLite runs a query, a step per line.
func explainQuery(t *testing.T, db *sql.DB, statement string, args []any) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return strings.Join(steps, "\n")
}
