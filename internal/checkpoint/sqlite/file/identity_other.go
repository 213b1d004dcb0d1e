//go:build !unix

package file

import (
	"io/fs"
	"os"
)

// identity tells a file from all others that are there.
type identity struct{ info fs.FileInfo }

func (i identity) isSame(other identity) bool { return os.SameFile(i.info, other.info) }

// identifyFile finds the file that a name leads to.
func identifyFile(name string) (identity, error) {
	info, err := os.Stat(name)
	return identity{info}, err
}

// identifyOpen is identifyFile for a file that is open.
func identifyOpen(f *os.File) (identity, error) {
	info, err := f.Stat()
	return identity{info}, err
}
