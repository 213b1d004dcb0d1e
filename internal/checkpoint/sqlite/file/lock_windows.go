//go:build windows

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock, or reports that another process holds it. The locked
// byte lies behind the text of the file, so that others can still read the pid.
func tryLock(f *os.File) (held bool, err error) {
	return lockAt(f, &windows.Overlapped{Offset: 1 << 20})
}

// tryLockDatabase is tryLock for a database: at a byte that SQLite never locks.
func tryLockDatabase(f *os.File) (held bool, err error) {
	return lockAt(f, &windows.Overlapped{OffsetHigh: lockByteOffset >> 32})
}

func lockAt(f *os.File, at *windows.Overlapped) (held bool, err error) {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}
