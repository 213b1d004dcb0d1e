//go:build unix && !linux

package file

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// identity tells a file from all others that are there.
type identity struct{ device, inode uint64 }

func (i identity) isSame(other identity) bool { return i == other }

// identifyFile finds the file that a name leads to. It stands beside each commit, so it
// makes nothing that it does not need.
func identifyFile(name string) (identity, error) {
	var found unix.Stat_t
	for {
		err := unix.Stat(name, &found)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return identity{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		return identityOf(&found), nil
	}
}

// identifyOpen is identifyFile for a file that is open.
func identifyOpen(f *os.File) (identity, error) {
	var found unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &found); err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return identityOf(&found), nil
}

func identityOf(s *unix.Stat_t) identity {
	return identity{uint64(s.Dev), s.Ino} //nolint:unconvert,nolintlint // it is of another type elsewhere
}
