package file

import (
	"errors"
	"math"
	"os"
	"path/filepath"
)

// MinSpace is less than SQLite needs at once.
const MinSpace = 64 << 10

// Reserve is a file beside the database that holds space of the disk back. It holds no data.
type Reserve struct {
	path string
	size int64
}

// NewReserve is the reserve of the database at a path, of a size; with 0 or less there is none.
func NewReserve(path string, size int64) *Reserve {
	return &Reserve{path: path + "-reserve", size: size}
}

// EnsureFile makes the file, or makes it whole.
func (r *Reserve) EnsureFile() error {
	if r.size <= 0 {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, privateMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if size := r.MaxSize(); err == nil && info.Size() < size {
		err = allocateBytes(f, size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		r.RemoveFile()
	}
	return err
}

// MaxSize is how large the reserve may be.
func (r *Reserve) MaxSize() int64 { return min(r.size, SizeLimit()) }

// RemoveFile gives the reserve up.
func (r *Reserve) RemoveFile() { _ = os.Remove(r.path) }

// IsDiskFull reports whether the disk takes no more of this account, as when a quota
// is used up, which the count of free bytes does not show.
func (r *Reserve) IsDiskFull() bool {
	f, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+"-*")
	if err != nil {
		return isOutOfSpace(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	return isOutOfSpace(errors.Join(writeZeros(f, MinSpace), f.Sync(), f.Close()))
}

// LogSpace is how much the log of the database at a path may grow: as the disk and the
// largest file that this process may write allow.
func LogSpace(path string) int64 {
	left := FreeBytes(path)
	if limit := SizeLimit(); limit < math.MaxInt64 {
		if log, err := os.Stat(path + "-wal"); err == nil {
			limit = max(0, limit-log.Size())
		}
		left = min(left, limit)
	}
	return left
}

// writeZeros writes n bytes, for file systems that can't allocate.
func writeZeros(f *os.File, n int64) error {
	block := make([]byte, 64<<10)
	for at := int64(0); at < n; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), n-at)], at); err != nil {
			return err
		}
	}
	return nil
}
