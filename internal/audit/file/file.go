package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/audit"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/filelock"
)

// Error says why a file can't hold the audit.
type Error struct {
	Path string
	Is   string
	Want string
}

// Error names the file, the problem and what would be right.
func (e *Error) Error() string { return e.Path + " " + e.Is + ": want " + e.Want }

// Options make a File. Zero fields mean their defaults, but for Sync.
type Options struct {
	Path     string
	MaxBytes int64 // of a file, which is then renamed; default 128 MiB
	Keep     int   // renamed files that stay; default 32
	// Sync is the time for which lines may be in the cache of the system only; 0 = none.
	Sync   time.Duration
	Logger *zap.Logger // nil = nothing is logged
}

// Defaults of Options.
const (
	DefaultMaxBytes = 128 << 20
	DefaultKeep     = 32
	DefaultSync     = time.Second
)

// File is a sink that appends lines to a file of mode 0600. One process may have it at
// a time. A file that was renamed or removed is followed by a new one at the path, and
// the chain goes on there. A file of MaxBytes is renamed: the number of its last line
// follows its name.
type File struct {
	o     Options
	lines lineWriter // used by WriteRecords only

	mu        sync.Mutex
	current   *os.File // nil = not open
	bytes     int64    // of current
	isDirty   bool     // lines wait to be synced
	syncError error    // of a sync between two writes, for the next one
	timer     *time.Timer
}

// Open opens a file, or makes it. The error is an *Error.
func Open(o Options) (*File, error) {
	o.MaxBytes, o.Keep = cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.Keep, DefaultKeep)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	f := &File{o: o}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.openFile(); err != nil {
		if _, ok := errors.AsType[*Error](err); !ok {
			err = &Error{Path: o.Path, Is: "can't be opened: " + describeCause(err), Want: "a file that this process may write"}
		}
		return nil, err
	}
	if info, err := f.current.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		o.Logger.Warn("others may read the audit: give the file mode 0600", zap.String("file", o.Path), zap.Stringer("mode", info.Mode().Perm()))
	}
	return f, nil
}

// openFile opens the file at the path and finds where the chain goes on.
func (f *File) openFile() (err error) {
	if info, err := os.Stat(f.o.Path); err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for a reader
		return &Error{Path: f.o.Path, Is: "is no regular file", Want: "a file that this process may write"}
	}
	opened, err := os.OpenFile(f.o.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	isTaken, err := filelock.TryLock(opened)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if isTaken {
		return &Error{Path: f.o.Path, Is: "belongs to another server", Want: "a file of its own for each server"}
	}
	size, err := opened.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > 0 {
		if err := f.continueFile(opened, size); err != nil {
			return err
		}
	} else {
		f.lines.leaveLine()
	}
	f.current, f.bytes = opened, size
	return nil
}

// continueFile finds the last line of a file, and what a write has left behind it.
func (f *File) continueFile(from *os.File, size int64) error {
	start := max(size-2*audit.MaxLineBytes, 0)
	tail := make([]byte, size-start)
	if _, err := from.ReadAt(tail, start); err != nil {
		return err
	}
	if !f.lines.continueText(string(tail), start == 0) {
		return &Error{Path: f.o.Path, Is: "ends with a line that is no record of the audit", Want: "another path, or rename the file"}
	}
	return nil
}

// WriteRecords appends records. Errors are those of the file system.
func (f *File) WriteRecords(_ context.Context, list []audit.Record) (written int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.followPath(); err != nil {
		return 0, err
	}
	written, err = f.lines.writeRecords(countingWriter{f}, list)
	f.isDirty = true
	return written, errors.Join(err, f.syncLater(), f.renameFull())
}

// countingWriter counts the bytes of the file.
type countingWriter struct{ f *File }

func (w countingWriter) Write(b []byte) (int, error) {
	n, err := w.f.current.Write(b)
	w.f.bytes += int64(n)
	return n, err
}

// followPath opens the file at the path, unless it is the current one.
func (f *File) followPath() error {
	if f.current != nil {
		there, err := os.Stat(f.o.Path)
		if err == nil {
			var own os.FileInfo
			if own, err = f.current.Stat(); err == nil && os.SameFile(there, own) {
				return nil
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := f.closeCurrent(); err != nil {
			f.o.Logger.Error("the file of the audit can't be closed", zap.String("file", f.o.Path), zap.Error(err))
		}
		f.o.Logger.Info("the file of the audit was moved; another one goes on", zap.String("file", f.o.Path))
	}
	return f.openFile()
}

// syncLater syncs the file when it is time to. It is called with mu locked.
func (f *File) syncLater() error {
	earlier := f.syncError
	f.syncError = nil
	switch {
	case f.o.Sync <= 0:
		return errors.Join(earlier, f.syncFile())
	case f.timer == nil:
		f.timer = time.AfterFunc(f.o.Sync, contain.Func(f.syncNow, contain.LogPanic(f.o.Logger, "syncing the audit panicked")))
	}
	return earlier
}

// syncNow syncs the file from a timer.
func (f *File) syncNow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timer = nil
	f.syncError = f.syncFile()
}

func (f *File) syncFile() error {
	if !f.isDirty || f.current == nil {
		return nil
	}
	f.isDirty = false
	return f.current.Sync()
}

// renameFull renames a file of MaxBytes, and removes the oldest of the renamed ones.
func (f *File) renameFull() error {
	if f.bytes < f.o.MaxBytes || f.lines.endsAmidLine() {
		return nil
	}
	last, _ := f.lines.chain.Last()
	err := f.closeCurrent()
	if err := os.Rename(f.o.Path, fmt.Sprintf("%s.%0*d", f.o.Path, numberDigits, last)); err != nil {
		return err
	}
	return errors.Join(err, f.removeOldest())
}

// numberDigits is the number of digits behind the name of a renamed file, so that
// names sort as numbers do.
const numberDigits = 12

func (f *File) removeOldest() error {
	folder, name := filepath.Split(f.o.Path)
	entries, err := os.ReadDir(cmp.Or(folder, "."))
	if err != nil {
		return err
	}
	var renamed []string
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), name+".")
		if _, err := strconv.ParseUint(number, 10, 64); ok && err == nil && len(number) >= numberDigits {
			renamed = append(renamed, e.Name())
		}
	}
	slices.Sort(renamed)
	var all []error
	for len(renamed) > f.o.Keep {
		all = append(all, os.Remove(filepath.Join(folder, renamed[0])))
		renamed = renamed[1:]
	}
	return errors.Join(all...)
}

func (f *File) closeCurrent() error {
	err := f.syncFile()
	closed := f.current.Close() // which ends the lock
	f.current, f.bytes = nil, 0
	return errors.Join(err, closed)
}

// Close syncs and closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
	}
	if f.current == nil {
		return f.syncError
	}
	return errors.Join(f.syncError, f.closeCurrent())
}

// describeCause returns an error of the operating system without the path.
func describeCause(err error) string {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}
