package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Reloaded is the value of a file, which is parsed anew when the file changes. Its
// methods may be called at the same time.
type Reloaded[T any] struct {
	path    string
	parse   func(text []byte) (T, error)
	report  func(error)
	current atomic.Pointer[T]

	mu      sync.Mutex
	changed func() // of a new value; nil = no caller wants to know
	seen    string // digest of the text that was parsed last, or the error that kept it from being read
}

// Load reads a file. parse returns the value of its text. report is called once for
// each change of the file that can't be used, and the value before stays. Load
// returns an error when the file can't be used now.
func Load[T any](path string, parse func(text []byte) (T, error), report func(error)) (*Reloaded[T], error) {
	r := &Reloaded[T]{path: path, parse: parse, report: report}
	text, err := Read(path)
	if err != nil {
		return nil, err
	}
	value, err := parse(text)
	if err != nil {
		return nil, err
	}
	r.seen = digestOf(text)
	r.current.Store(&value)
	return r, nil
}

// Value returns the value of the newest text that could be parsed.
func (r *Reloaded[T]) Value() T { return *r.current.Load() }

// ReportChanges has changed called after each change of the file whose value is in use.
// It replaces an earlier function.
func (r *Reloaded[T]) ReportChanges(changed func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
}

// CheckFile reads the file again. Contents decide, not times: a change within the
// resolution of a clock is seen too.
func (r *Reloaded[T]) CheckFile() {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := Read(r.path)
	seen := digestOf(text)
	if err != nil {
		seen = err.Error()
	}
	if seen == r.seen {
		return
	}
	r.seen = seen
	var value T
	if err == nil {
		value, err = r.parse(text)
	}
	if err != nil {
		r.report(fmt.Errorf("the values before stay in use: %w", err))
		return
	}
	r.current.Store(&value)
	if r.changed != nil {
		r.changed()
	}
}

// WatchFile checks the file at an interval until ctx ends.
func (r *Reloaded[T]) WatchFile(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.CheckFile()
		}
	}
}

// Read returns the text of a file. The error is an *Error.
func Read(path string) (text []byte, err error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, &Error{File: path, Is: "is no regular file", Want: "a file that this process may read"}
	}
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, &Error{File: path, Is: "can't be read: " + describeCause(err), Want: "a file that this process may read"}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, &Error{File: path, Is: "can't be read: " + describeCause(err), Want: "a file that this process may read"}
	}
	if len(text) > MaxBytes {
		return nil, &Error{File: path, Is: "is too large", Want: fmt.Sprintf("at most %d bytes", MaxBytes)}
	}
	return text, nil
}

// describeCause returns an error of the operating system without the path.
func describeCause(err error) string {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err.Error()
	}
	return err.Error()
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return string(sum[:])
}
