package sqlite_test

import (
	"database/sql"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/checkpointtest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
)

var updateFormat = flag.Bool("update-format", false, "take over what is written now, see make format")

// TestFormat fails when the same changes are written in another way than the
// number of the schema says.
func TestFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "graphd.db")
	s, err := sqlite.Open(t.Context(), sqlite.Options{
		Path: path, Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 1, time.UTC) },
	})
	require.NoError(t, err)
	checkpointtest.WriteAll(t.Context(), t, s)
	require.NoError(t, s.Close())
	checkpointtest.RequireFormat(t, checkpointtest.Format{
		Kind: "sqlite", Number: sqlite.SchemaVersion, Stores: "../../../tests/upgrade/testdata/frozen",
		Update: *updateFormat,
	}, listRows(t, path))
}

// listRows is the schema, then every row of every table.
func listRows(t *testing.T, path string) []byte {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var out []string
	objects := readRows(t, db, `SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`)
	for _, o := range objects {
		out = append(out, o[2])
	}
	for _, o := range objects {
		if o[1] != "table" {
			continue
		}
		var lines []string
		for _, row := range readRows(t, db, `SELECT * FROM "`+o[0]+`"`) {
			if o[0] == "meta" && row[0] == "path" {
				row[1] = "?"
			}
			lines = append(lines, fmt.Sprintf("%s %+q", o[0], row))
		}
		slices.Sort(lines)
		out = append(out, lines...)
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

// readRows reads what a query finds as texts.
func readRows(t *testing.T, db *sql.DB, query string, args ...any) (out [][]string) {
	t.Helper()
	found, err := db.QueryContext(t.Context(), query, args...)
	require.NoError(t, err)
	defer func() { require.NoError(t, found.Close()) }()
	columns, err := found.Columns()
	require.NoError(t, err)
	for found.Next() {
		values, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(t, found.Scan(to...))
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = v.String
		}
		out = append(out, row)
	}
	require.NoError(t, found.Err())
	return out
}
