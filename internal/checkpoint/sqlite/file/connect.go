package file

import (
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

// ConnectDatabase opens connections to the database at a path, each with these pragmas.
func ConnectDatabase(path string, pragmas ...string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", buildURI(path, url.Values{"_pragma": pragmas}))
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	return db, nil
}

// ConnectWriter opens the one connection that changes the database at a path. What it
// has committed is on the disk.
func ConnectWriter(path string, pragmas ...string) (*sql.DB, error) {
	db, err := ConnectDatabase(path, append([]string{"journal_mode(wal)", "synchronous(full)", "busy_timeout(5000)"}, pragmas...)...)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func buildURI(path string, q url.Values) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/… on Windows
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: slashed, RawQuery: q.Encode()}).String()
}
