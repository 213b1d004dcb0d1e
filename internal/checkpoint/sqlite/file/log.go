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

// KeyLastPath is the key in the table meta of the name by which the file was open
// last, without symbolic links.
const KeyLastPath = "path"

// findLog refuses a file whose log lies under another name.
func (f *Database) findLog(ctx context.Context) error {
	last := f.readLastPath(ctx)
	if last == "" || last == f.RealPath {
		return nil
	}
	if log, err := os.Stat(last + "-wal"); err != nil || log.Size() == 0 {
		return nil //nolint:nilerr // there is none that could be seen
	}
	if other, err := identify(last); err == nil && !other.same(f.dbInfo) {
		return nil // it is the log of that file, and this one is a copy
	}
	return &StrayLogError{Path: f.RealPath, Last: last}
}

// readLastPath reads the file without any log. What can't be read so says nothing.
func (f *Database) readLastPath(ctx context.Context) (path string) {
	db, err := sql.Open("sqlite", buildURI(f.RealPath, url.Values{"mode": {"ro"}, "immutable": {"1"}}))
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }()
	_ = db.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, KeyLastPath).Scan(&path)
	return path
}
