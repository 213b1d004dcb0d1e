package file

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// ChangedError says that a server has changed a file that was read without locks, so
// that what was read may not belong together.
type ChangedError struct {
	Path string
}

// Error names the file and says what to do.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("sqlite: a server began to use %s while it was read, so what was read may be wrong: read it again", e.Path)
}

// A ReadOnly is a database that is read beside the process that owns it, if any does. It
// takes no lock of graphd and changes no record; SQLite may make the index of the log.
type ReadOnly struct {
	// RealPath is the name without symbolic links.
	RealPath string

	hasLog bool // of a server that runs or was killed
	state  fileState
}

// fileState is what changes when a file is written.
type fileState struct {
	id      identity
	size    int64
	changed time.Time
}

// FindReadOnly finds the database at a path. It fails with a StrayLogError as
// OpenOwned does.
func FindReadOnly(ctx context.Context, path string) (*ReadOnly, error) {
	realPath, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	r := &ReadOnly{RealPath: realPath}
	if r.state, err = readState(realPath); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	d := &Database{RealPath: realPath, dbInfo: r.state.id}
	if err := d.findLog(ctx); err != nil {
		return nil, err
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := os.Stat(realPath + suffix); !errors.Is(err, fs.ErrNotExist) {
			r.hasLog = true
		}
	}
	return r, nil
}

func readState(path string) (s fileState, err error) {
	if s.id, err = identifyFile(path); err != nil {
		return s, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	s.size, s.changed = info.Size(), info.ModTime()
	return s, nil
}

// Connect opens connections that can only read. Without a log the file is read as it
// stands: SQLite would make a log and its index beside it, and leave them there.
func (r *ReadOnly) Connect() (*sql.DB, error) {
	params := url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "busy_timeout(5000)"}}
	if !r.hasLog {
		params.Set("immutable", "1")
	}
	db, err := sql.Open("sqlite", buildURI(r.RealPath, params))
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	return db, nil
}

// CheckUnchanged returns a ChangedError when the file was read as it stands and has been
// written since.
func (r *ReadOnly) CheckUnchanged() error {
	if r.hasLog {
		return nil // SQLite has shown one state to each query
	}
	now, err := readState(r.RealPath)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if !now.id.isSame(r.state.id) || now.size != r.state.size || !now.changed.Equal(r.state.changed) {
		return &ChangedError{Path: r.RealPath}
	}
	return nil
}
