package access

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Loader keeps the policy of a file, and reads it again when the file changes.
// While the file is broken or gone, the policy from before stays. It is safe for
// concurrent use.
type Loader struct {
	path    string
	current atomic.Pointer[Policy]

	mu     sync.Mutex
	text   []byte // of current
	broken string // the error that was reported last, empty when there is none
}

// NewLoader reads a policy file. The error is a *FileError, or one of the file
// system.
func NewLoader(path string) (*Loader, error) {
	l := &Loader{path: path}
	text, err := readPolicyFile(path)
	if err != nil {
		return nil, err
	}
	p, err := Parse(path, text)
	if err != nil {
		return nil, err
	}
	l.text = text
	l.current.Store(p)
	return l, nil
}

// Policy returns the present policy.
func (l *Loader) Policy() *Policy { return l.current.Load() }

// Reload reads the file. It reports whether there is news: a new policy, a file that
// is as it was before it broke, or a failure that was not reported by the call
// before. The error says why the policy from before stays; it is a *FileError, or
// one of the file system. A failure that is no news returns no error.
func (l *Loader) Reload() (isNews bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := readPolicyFile(l.path)
	if err == nil && bytes.Equal(text, l.text) {
		isNews = l.broken != ""
		l.broken = ""
		return isNews, nil
	}
	var p *Policy
	if err == nil {
		p, err = Parse(l.path, text)
	}
	if err != nil {
		if err.Error() == l.broken {
			return false, nil
		}
		l.broken = err.Error()
		return true, err
	}
	l.text, l.broken = text, ""
	l.current.Store(p)
	return true, nil
}

// Watch reloads the file at this interval until ctx ends, and reports what is news:
// nil for a policy that counts from now on, else why the one from before stays. It
// does not return before. The content is compared, not the time of the file, so that
// no change is missed. Replace a file by a rename: what is half written may be a
// policy, too.
func (l *Loader) Watch(ctx context.Context, every time.Duration, report func(error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if ctx.Err() != nil { // select takes any of two ready cases
			return
		}
		if isNews, err := l.Reload(); isNews {
			report(err)
		}
	}
}

// readPolicyFile reads a file, and one byte more than Parse accepts of a larger one.
func readPolicyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("policy file: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return nil, &FileError{Path: path, Problems: []Problem{{Reason: "this is no regular file", Want: "a policy in YAML"}}}
	}
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("policy file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("policy file: %w", err)
	}
	return text, nil
}
