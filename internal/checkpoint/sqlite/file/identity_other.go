//go:build !unix

package file

import (
	"io/fs"
	"os"
)

// identity tells a file from all others that are there.
type identity struct{ info fs.FileInfo }

func (i identity) same(other identity) bool { return os.SameFile(i.info, other.info) }

// identify looks which file a name leads to.
func identify(name string) (identity, error) {
	info, err := os.Stat(name)
	return identity{info}, err
}

// identifyOpen is identify for a file that is open.
func identifyOpen(f *os.File) (identity, error) {
	info, err := f.Stat()
	return identity{info}, err
}
