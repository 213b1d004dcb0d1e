package sqlite

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

// file is the database that the process owns: the same one for as long as it is
// open, whatever becomes of its name.
type file struct {
	path  string // as the operator named it
	real  string // without symbolic links: what lies beside it is named after this
	lock  *fileLock
	held  *os.File // open, and locked: another name of the file finds the lock
	db    identity
	log   string    // the write-ahead log
	wal   *identity // of the log; nil before there is one
	stat  func(name string) (identity, error)
	wider []string // files whose rights were narrowed
}

// private is who may use the files: the account that graphd runs as.
const private fs.FileMode = 0o600

// own takes the file for this process alone, and for its account alone.
func own(ctx context.Context, path string) (*file, error) {
	f, err := take(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{f.real, f.real + "-wal", f.real + "-shm", f.real + ".lock"} {
		if err := f.narrow(name); err != nil {
			return nil, errors.Join(err, f.release())
		}
	}
	return f, nil
}

// take makes the file when it is missing, and locks it for this process alone,
// by whatever name it is opened.
func take(ctx context.Context, path string) (*file, error) {
	f := &file{path: path, stat: identify}
	var err error
	if f.real, err = filepath.EvalSymlinks(path); err == nil {
		// The lock first: to open and close a file lets go of the locks that this process has on it.
		if f.lock, err = lockFile(f.real + ".lock"); err != nil {
			return nil, err
		}
	}
	if err = f.hold(); err == nil {
		err = f.findLog(ctx)
	}
	if err == nil {
		err = f.lockAside() // where the lock is the process's, looking for the log has ended it
	}
	if err != nil {
		return nil, errors.Join(err, f.release())
	}
	return f, nil
}

// hold opens and locks the file itself.
func (f *file) hold() (err error) {
	if f.held, err = os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, private); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if f.lock == nil { // it was not there before
		if f.real, err = filepath.EvalSymlinks(f.path); err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
		if f.lock, err = lockFile(f.real + ".lock"); err != nil {
			return err
		}
	}
	if err := f.lockAside(); err != nil {
		return err
	}
	if f.db, err = identifyOpen(f.held); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	return nil
}

// lockAside locks the file that is open, by whatever name others know it.
func (f *file) lockAside() error {
	taken, err := tryLockAside(f.held)
	if err != nil {
		return fmt.Errorf("sqlite: lock %s: %w", f.real, err)
	}
	if taken {
		return &InUseError{Path: f.real}
	}
	return nil
}

// narrow takes away the rights of others. SQLite gives those of the database to
// what it makes beside it.
func (f *file) narrow(name string) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || runtime.GOOS == "windows" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if info.Mode().Perm()&^private == 0 {
		return nil
	}
	was := fmt.Sprintf("%s could be read by others (%#o)", name, info.Mode().Perm())
	now := fmt.Sprintf("; it is %#o now", private)
	if err := os.Chmod(name, private); err != nil {
		now = " and still can: " + err.Error()
	}
	f.wider = append(f.wider, was+now)
	return nil
}

// noteLog notes which log belongs to the database. It is there when something
// was written.
func (f *file) noteLog() error {
	f.log = f.real + "-wal"
	wal, err := identify(f.log)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	f.wal = &wal
	return f.check()
}

// check refuses to go on when what is found by the names is not what is open:
// changes would be written to where nothing finds them.
func (f *file) check() error {
	if err := f.same(f.path, f.db); err != nil {
		return err
	}
	if f.wal == nil {
		return nil
	}
	return f.same(f.log, *f.wal)
}

func (f *file) same(name string, opened identity) error {
	now, err := f.stat(name)
	happened := "replaced"
	switch {
	case err == nil && now.same(opened):
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		happened = "removed"
	case err != nil:
		return fmt.Errorf("%w: sqlite: %w", checkpoint.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %s was %s while graphd has it open; put the file back under its name (not a copy of it), "+
		"or restart graphd to begin with what is there now", checkpoint.ErrStoreReplaced, name, happened)
}

func (f *file) release() error {
	var errs []error
	if f.held != nil {
		errs = append(errs, f.held.Close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.release())
	}
	return errors.Join(errs...)
}

// Remove removes the database at a path that no process has open, and all files
// that a store keeps beside it.
func Remove(path string) error {
	var all []error
	for _, suffix := range []string{"", "-wal", "-shm", "-reserve", ".lock"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}
