//go:build !linux

package file

import "os"

// allocateBytes gives a file n bytes of the disk.
func allocateBytes(f *os.File, n int64) error { return writeZeros(f, n) }
