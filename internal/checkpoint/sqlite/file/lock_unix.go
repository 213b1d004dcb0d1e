//go:build unix

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock, or reports that another process holds it.
func tryLock(f *os.File) (held bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// tryLockDatabase is tryLock for a database: at a byte that SQLite never locks, so
// that a hard link of the file finds the lock too.
func tryLockDatabase(f *os.File) (held bool, err error) {
	l := &unix.Flock_t{Type: unix.F_WRLCK, Start: lockByteOffset, Len: 1}
	err = unix.FcntlFlock(f.Fd(), setLockCommand, l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return true, nil
	}
	return false, err
}
