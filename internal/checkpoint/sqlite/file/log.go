package file

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
)

// The log of a database is named after the name by which that is open. A
// process that opens the file by another name misses what the log holds, so the
// file says by which name it was open last. When it is closed in order no log
// is left, and any name will do.

// StrayLogError says that changes of a database are in a log that belongs to
// another of its names.
type StrayLogError struct {
	Path string // by which the file was to be opened
	Last string // by which it was open last
}

// Error says what to do.
func (e *StrayLogError) Error() string {
	return fmt.Sprintf("sqlite: %s was open as %s when graphd was killed, and %s-wal still holds changes of it: "+
		"open it as %s, or move that log along to %s-wal; remove the log only to lose the changes", e.Path, e.Last, e.Last, e.Last, e.Path)
}

// LogLeftError says that changes of a database are in its log still, though the process that
// made them is done with it.
type LogLeftError struct {
	Path  string
	Cause error // nil = another process read the file
}

// Error says what to do.
func (e *LogLeftError) Error() string {
	why := "another process read them"
	if e.Cause != nil {
		why = e.Cause.Error()
	}
	return fmt.Sprintf("sqlite: changes of %s may be in %s-wal only, since %s: copy and move both files together, "+
		"or let a server start and stop again", e.Path, e.Path, why)
}

// Unwrap returns the cause.
func (e *LogLeftError) Unwrap() error { return e.Cause }

// A RowQuerier runs a query, as a connection or several do.
type RowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// MoveLog moves the log of the database at a path into the file and cuts it off. Unlike the
// end of the last connection, it does so beside the connections of other processes. It fails
// with a LogLeftError when one of them is within a query.
func MoveLog(ctx context.Context, path string, db RowQuerier) error {
	var busy, log, moved int64
	if err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved); err != nil {
		return &LogLeftError{Path: path, Cause: err}
	}
	if busy != 0 {
		return &LogLeftError{Path: path}
	}
	return nil
}

// KeyLastPath is the key in the table meta of the name by which the file was open
// last, without symbolic links.
const KeyLastPath = "path"

// findLog refuses a file whose log lies under another name.
func (d *Database) findLog(ctx context.Context) error {
	last := d.readLastPath(ctx)
	if last == "" || last == d.RealPath {
		return nil
	}
	if log, err := os.Stat(last + "-wal"); err != nil || log.Size() == 0 {
		return nil //nolint:nilerr // there is none that could be seen
	}
	if other, err := identifyFile(last); err == nil && !other.isSame(d.dbInfo) {
		return nil // it is the log of that file, and this one is a copy
	}
	return &StrayLogError{Path: d.RealPath, Last: last}
}

// readLastPath reads the file without any log. What can't be read so says nothing.
func (d *Database) readLastPath(ctx context.Context) (path string) {
	db, err := sql.Open("sqlite", buildURI(d.RealPath, url.Values{"mode": {"ro"}, "immutable": {"1"}}))
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }()
	_ = db.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, KeyLastPath).Scan(&path)
	return path
}
