//go:build windows

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockByteOffset is the byte that is locked: far behind what a file can hold. Windows keeps
// others from reading and writing what is locked.
const lockByteOffset = 1 << 60

// TryLock locks a file until it is closed, or reports that it is locked by another open file,
// of this process or of another one. Who takes no lock may read and write the file.
func TryLock(f *os.File) (isTaken bool, err error) {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockByteOffset >> 32})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}
