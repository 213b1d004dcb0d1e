//go:build linux || darwin

package file

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// FreeBytes is how many bytes this account may still write where a file lies.
func FreeBytes(path string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return math.MaxInt64
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // types differ by system
}

// SizeLimit is how large this process may make a file: `ulimit -f`.
func SizeLimit() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err != nil || l.Cur > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(l.Cur)
}

// isOutOfSpace reports whether the system refused to write for lack of space: on the
// disk, in the quota of the account or in a file.
func isOutOfSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
