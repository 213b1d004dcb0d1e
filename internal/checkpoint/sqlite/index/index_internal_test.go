package index

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/file"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite/tags"
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
		"SEARCH interrupts USING INDEX interrupts_created (tenant=?": {{}, {Run: "r"}, {Node: "n", Limit: 10}, {After: at}},
		"SEARCH interrupts USING INDEX interrupts_state (tenant=? AND state=?": {
			{States: open}, {States: open, Reason: "r"}, {States: open, After: at, Limit: 10},
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
	require.Contains(t, explainQuery(t, db, countOpenInterrupts, []any{"acme", 10}),
		"SEARCH interrupts USING INDEX interrupts_state (tenant=? AND state=?")
	q := checkpoint.InterruptQuery{Tenant: "acme", States: append(open, checkpoint.InterruptAnswered)}
	statement, args := buildInterruptQuery(&q)
	require.Contains(t, explainQuery(t, db, statement, args), "(tenant=?", "whichever index it takes")
}

// TestListsOfThreadsReadOneIndex asks SQLite how it finds, counts and passes over threads: at the
// place of the tenant in one index, in order, and with the table itself for nothing but the heads
// of a page.
func TestListsOfThreadsReadOneIndex(t *testing.T) {
	db := makeTables(t)
	box, err := seal.New(seal.Options{Keys: []seal.Key{{ID: "k", Secret: make([]byte, seal.KeySize)}}})
	require.NoError(t, err)
	x := &Index{box: box}
	for want, list := range map[string][]checkpoint.ThreadQuery{
		"SEARCH k USING COVERING INDEX threads_updated (<expr>=?": {{}},
		"SEARCH k USING COVERING INDEX threads_state (<expr>=? AND state=?": {
			{State: checkpoint.ThreadBusy, Limit: 10}, {State: checkpoint.ThreadBusy, Graph: "acme@g"},
		},
		"SEARCH k USING COVERING INDEX threads_graph (<expr>=? AND graph=?": {{Graph: "acme@g"}},
		"SEARCH k USING PRIMARY KEY (tenant=? AND label=?": {
			{Metadata: map[string]string{"user": "ann"}},
			{Metadata: map[string]string{"user": "ann", "team": "a"}, State: checkpoint.ThreadIdle, Graph: "acme@g"},
		},
	} {
		for _, q := range list {
			for _, at := range []time.Time{{}, time.Unix(7, 0)} {
				q.Tenant, q.OnlyUUIDs = "acme", at.IsZero()
				if !at.IsZero() {
					q.Before = q.PositionOf(&checkpoint.Head{Created: at, Updated: at, Thread: "acme@t"})
				}
				requirePlans(t, db, x.buildThreadList(&q, 0), want)
			}
		}
	}
}

func requirePlans(t *testing.T, db *sql.DB, l *threadList, want string) {
	t.Helper()
	for name, build := range map[string]func() (string, []any){
		"heads": l.headQuery,
		"place": func() (string, []any) { return l.placeQuery(50_000) },
		"count": func() (string, []any) { return l.countQuery(50_000) },
	} {
		statement, args := build()
		plan := explainQuery(t, db, statement, args)
		require.Contains(t, plan, want, statement)
		require.NotContains(t, plan, "USE TEMP B-TREE", "nothing is sorted: %s", statement)
		require.NotContains(t, plan, "SCAN k", statement)
		for step := range strings.SplitSeq(plan, "\n") {
			if strings.Contains(step, " o ") { // the other conditions
				require.Regexp(t, `SEARCH o (EXISTS )?USING (COVERING INDEX|PRIMARY KEY).* AND created=\?`, step, "%s\n%s", statement, plan)
			}
		}
		require.Equal(t, name == "heads", strings.Contains(plan, "SEARCH t USING PRIMARY KEY"), "%s\n%s", statement, plan)
	}
}

// TestListsByTagReadWhatTheyShow asks SQLite how it finds the interrupts of tags: in the order of
// the list, from the place where the page begins, merged and not sorted.
func TestListsByTagReadWhatTheyShow(t *testing.T) {
	box, err := seal.New(seal.Options{Keys: []seal.Key{{ID: "k", Secret: make([]byte, seal.KeySize)}}})
	require.NoError(t, err)
	x := &Index{box: box}
	db := makeTables(t)
	after := &taggedKey{at: 7, thread: "acme@t", id: "q"}
	for _, q := range []checkpoint.InterruptQuery{
		{Tags: []string{"a"}},
		{AnyTag: []string{"a", "b"}},
		{ByDue: true},
		{ByDue: true, DueBefore: time.Unix(7, 0), AnyTag: []string{"a", "b"}},
	} {
		q.Tenant = "acme"
		want := "PRIMARY KEY (tenant=? AND tag=? AND (created,thread,id)>(?,?,?))"
		if q.ByDue {
			want = "INDEX interrupt_tags_due (tenant=? AND tag=? AND (due,thread,id)>(?,?,?)"
		}
		chosen := slices.Concat(q.Tags, q.AnyTag)
		if len(chosen) == 0 {
			chosen = []string{tags.AnyDue}
		}
		statement, args := x.buildTaggedQuery(&q, chosen, [][]string{{"c", "d"}}, after, 10)
		plan := explainQuery(t, db, statement, args)
		require.Equal(t, strings.Count(statement, "t.tag = ?"), strings.Count(plan, want), "%s\n%s", statement, plan)
		require.NotContains(t, plan, "ORDER BY", "nothing is sorted: %s", statement)
		require.NotContains(t, plan, "SCAN t", statement)
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
