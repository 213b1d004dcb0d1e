//go:build !linux

package sqlite

import "os"

// allocate gives a file n bytes of the disk.
func allocate(f *os.File, n int64) error { return fill(f, n) }
