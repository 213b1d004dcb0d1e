//go:build linux || darwin

package sqlite

import (
	"math"

	"golang.org/x/sys/unix"
)

// diskFree is how many bytes this account may still write where a file lies.
func diskFree(path string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return math.MaxInt64
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // types differ by system
}
