package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
)

func newResult() Result {
	once := func(v float64) measure.Spread { return measure.Of([]float64{v}) }
	return Result{
		About: report.About{Date: "2026-11-27", Cores: 2, Machine: "Toaster", Commit: "abc"},
		Operations: []OperationRow{
			{Name: "first page", Store: stand.RedisEverysec, Open: 1_000_000, P50: once(2), P99: once(9), Limit: once(0.5), ToLimit: once(4), Goal50: 5, Goal99: 15},
			{Name: "slow page", Store: stand.SQLite, Open: 400, P50: once(2), P99: once(16), Goal50: 5, Goal99: 15, Before: "892 ms"},
			{Name: "a vote", Store: stand.SQLite, Open: 400, P50: once(1), P99: once(2)},
			{Name: "tagged", Store: stand.SQLite, Open: 400, P50: once(2), P99: once(3), Limit: once(2), ToLimit: once(1), GoalRatio: 1.08},
		},
		Sent: []report.Line{{Title: "events", Against: "SQLite", Ratio: once(1500), Bound: 2000, Unit: "a second"}},
		InPage: []OperationRow{
			{Name: "a key", Store: stand.SQLite, Open: 400, P50: once(8), P99: once(9), Limit: once(2), ToLimit: once(4), GoalOver: 50},
		},
		Beside: []BesideRow{
			{Who: nobody, Store: stand.SQLite, Open: 400, Rate: once(700)},
			{Who: "20 watchers", Store: stand.SQLite, Open: 400, Rate: once(630), ToNone: once(0.9), Goal: 0.85},
		},
	}
}

func TestATableMarksWhatReachesItsGoals(t *testing.T) {
	r := newResult()
	text := r.Text()
	require.Contains(t, text, "| ✓ | first page | Redis  | 1,000,000 | 2      | 9      | ≤ 5, ≤ 15      | 0.50          | 4            |")
	require.Contains(t, text, "| ✗ | slow page  | SQLite | 400       | 2      | 16     | ≤ 5, ≤ 15      |               |              | 892 ms")
	require.Contains(t, text, "| – | a vote     |")
	require.Contains(t, text, "| ✓ | a key       | SQLite | 400  | 8      | 9      | ≤ limit + 50 | 2             | 4            |")
	require.Contains(t, text, "| ✓ | tagged     | SQLite | 400       | 2      | 3      | ≤ limit × 1.08 | 2             | 1            |")
	require.Contains(t, text, "| ✗ | events   | SQLite | 1500       | 1500 – 1500      | ≥ 2000 |")
	require.Contains(t, text, "| – | no watcher ")
	require.Contains(t, text, "| ✓ | 20 watchers ")
	require.NotContains(t, text, "memory", "SQLite has no line of it")
}

func TestAResultOfThePageAloneReplacesItsTableOnly(t *testing.T) {
	dir := t.TempDir()
	docs := filepath.Join(dir, "performance.md")
	require.NoError(t, os.WriteFile(docs, []byte(documentWithMarks), 0o600))
	r := newResult()
	r.Operations, r.Beside, r.Sent = nil, nil, nil
	require.NoError(t, (&options{out: dir, docs: docs}).deliver(r, t.Output()))
	require.FileExists(t, filepath.Join(dir, "2026-11-27-2x-toaster-inbox-page.json"))
	text, err := os.ReadFile(docs)
	require.NoError(t, err)
	require.Contains(t, string(text), "old tables")
	require.NotContains(t, string(text), "old page")
	require.Contains(t, string(text), "a key")
}

const documentWithMarks = `a
<!-- begin: bench-inbox -->
old tables
<!-- end: bench-inbox -->
<!-- begin: bench-inbox-page -->
old page
<!-- end: bench-inbox-page -->
z
`

func TestAResultIsWrittenReadAndPutIntoAPage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(page, []byte(documentWithMarks), 0o600))
	o := options{out: dir, docs: page}
	require.NoError(t, o.deliver(newResult(), t.Output()))
	again, err := load(filepath.Join(dir, "2026-11-27-2x-toaster-inbox.json"))
	require.NoError(t, err)
	require.Equal(t, newResult(), again)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "a\n<!-- begin: bench-inbox -->\n\n2026-11-27, 2 × Toaster, graphd abc")
	require.NotContains(t, string(text), "old")
	require.FileExists(t, filepath.Join(dir, "2026-11-27-2x-toaster-inbox.md"))
}
