package file

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocateBytes gives a file n bytes of the disk.
func allocateBytes(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return writeZeros(f, n)
	}
	return err
}
