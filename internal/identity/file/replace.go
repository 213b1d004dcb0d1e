package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/filelock"
)

// lockInterval is the pause between two attempts to lock a file.
const lockInterval = 20 * time.Millisecond

// Edit replaces the text of a file with what change makes of it. A file that does
// not exist has no text. A reader sees the text before or the text after, also when
// the machine stops in between. Edits of several processes follow each other: Edit
// waits for its turn, at most until ctx ends, and then returns its cause. The new
// file has mode 0600. When change returns an error, the file stays as it is. The
// lock is a file beside it, named like it with .lock at the end, which stays.
func Edit(ctx context.Context, path string, change func(text []byte) ([]byte, error)) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the file, not the link
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which ends the lock
	for {
		isTaken, err := filelock.TryLock(lock)
		if err != nil {
			return fmt.Errorf("lock %s: %w", lock.Name(), err)
		}
		if !isTaken {
			break
		}
		if err := backoff.Sleep(ctx, lockInterval); err != nil {
			return fmt.Errorf("another process edits %s: %w", path, err)
		}
	}
	var text []byte
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if text, err = Read(path); err != nil {
			return err
		}
	}
	text, err = change(text)
	if err != nil {
		return err
	}
	return replaceFile(path, text)
}

// replaceFile writes a file beside the one at path, and renames it.
func replaceFile(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
