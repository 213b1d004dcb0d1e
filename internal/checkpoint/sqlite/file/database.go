// Package file holds the files of a database: who owns them, by which names they are
// known, and how much space there is for them.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Database is the database that the process owns: the same one for as long as it is
// open, whatever becomes of its name.
type Database struct {
	// RealPath is the name without symbolic links: what lies beside the database is named after it.
	RealPath string
	// Warnings name files whose rights were narrowed.
	Warnings []string

	path    string // as the operator named it
	lock    *fileLock
	handle  *os.File // open, and locked: another name of the file finds the lock
	dbInfo  identity
	log     string    // the write-ahead log
	walInfo *identity // of the log; nil before there is one
	stat    func(name string) (identity, error)
}

// privateMode is who may use the files: the account that graphd runs as.
const privateMode fs.FileMode = 0o600

// OpenOwned takes the file for this process alone, and for its account alone.
func OpenOwned(ctx context.Context, path string) (*Database, error) {
	d, err := OpenLocked(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{d.RealPath, d.RealPath + "-wal", d.RealPath + "-shm", d.RealPath + ".lock"} {
		if err := d.restrictMode(name); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// OpenLocked makes the file when it is missing, and locks it for this process alone,
// by whatever name it is opened.
func OpenLocked(ctx context.Context, path string) (*Database, error) {
	d := &Database{path: path, stat: identifyFile}
	var err error
	if d.RealPath, err = filepath.EvalSymlinks(path); err == nil {
		// The lock first: opening and closing a file releases the locks that this process has on it.
		if d.lock, err = lockFile(d.RealPath + ".lock"); err != nil {
			return nil, err
		}
	}
	if err = d.openAndLock(); err == nil {
		err = d.findLog(ctx)
	}
	if err == nil {
		err = d.lockDatabase() // where the lock is the process's, looking for the log has ended it
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// openAndLock opens and locks the file itself.
func (d *Database) openAndLock() (err error) {
	if d.handle, err = os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, privateMode); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if d.lock == nil { // it was not there before
		if d.RealPath, err = filepath.EvalSymlinks(d.path); err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
		if d.lock, err = lockFile(d.RealPath + ".lock"); err != nil {
			return err
		}
	}
	if err := d.lockDatabase(); err != nil {
		return err
	}
	if d.dbInfo, err = identifyOpen(d.handle); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// lockDatabase locks the file that is open, by whatever name others know it.
func (d *Database) lockDatabase() error {
	taken, err := tryLockDatabase(d.handle)
	if err != nil {
		return fmt.Errorf("sqlite: lock %s: %w", d.RealPath, err)
	}
	if taken {
		return &InUseError{Path: d.RealPath}
	}
	return nil
}

// restrictMode takes away the rights of others. SQLite gives those of the database to
// what it makes beside it.
func (d *Database) restrictMode(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || runtime.GOOS == "windows" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if info.Mode().Perm()&^privateMode == 0 {
		return nil
	}
	was := fmt.Sprintf("%s could be read by others (%#o)", name, info.Mode().Perm())
	now := fmt.Sprintf("; it is %#o now", privateMode)
	if err := os.Chmod(name, privateMode); err != nil {
		now = " and still can: " + err.Error()
	}
	d.Warnings = append(d.Warnings, was+now)
	return nil
}

// NoteLog notes which log belongs to the database. It is there when something
// was written.
func (d *Database) NoteLog() error {
	d.log = d.RealPath + "-wal"
	wal, err := identifyFile(d.log)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	d.walInfo = &wal
	return d.CheckReplaced()
}

// CheckReplaced refuses to go on when what is found by the names is not what is open:
// changes would be written to where nothing finds them.
func (d *Database) CheckReplaced() error {
	if err := d.checkSame(d.path, d.dbInfo); err != nil {
		return err
	}
	if d.walInfo == nil {
		return nil
	}
	return d.checkSame(d.log, *d.walInfo)
}

func (d *Database) checkSame(name string, opened identity) error {
	now, err := d.stat(name)
	happened := "replaced"
	switch {
	case err == nil && now.isSame(opened):
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		happened = "removed"
	case err != nil:
		return fmt.Errorf("%w: sqlite: %w", checkpoint.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %s was %s while graphd has it open; put the file back under its name (not a copy of it), "+
		"or restart graphd to begin with what is there now", checkpoint.ErrStoreReplaced, name, happened)
}

// Close releases the locks.
func (d *Database) Close() error {
	var errs []error
	if d.handle != nil {
		errs = append(errs, d.handle.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.releaseLock())
	}
	return errors.Join(errs...)
}

// RemoveFiles removes the database at a path that no process has open, and all files
// that a store keeps beside it.
func RemoveFiles(path string) error {
	var all []error
	for _, suffix := range []string{"", "-wal", "-shm", "-reserve", ".lock"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
