//go:build unix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockByteOffset is the byte of a database that is locked for the process: far behind
// what SQLite locks and what a file can hold.
const lockByteOffset = 1 << 60

// tryLockDatabase locks a database, or reports that another process holds the lock: at a
// byte that SQLite never locks, so that a hard link of the file finds the lock too.
func tryLockDatabase(f *os.File) (isTaken bool, err error) {
	l := &unix.Flock_t{Type: unix.F_WRLCK, Start: lockByteOffset, Len: 1}
	err = unix.FcntlFlock(f.Fd(), setLockCommand, l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return true, nil
	}
	return false, err
}
