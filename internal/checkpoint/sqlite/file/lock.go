package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/graphd-dev/graphd/internal/filelock"
)

// InUseError says that another process has the file open.
type InUseError struct {
	Path string
	PID  int // 0 = unknown
}

// Error names the file and the process.
func (e *InUseError) Error() string {
	path := strings.TrimSuffix(e.Path, ".lock")
	if e.PID == 0 {
		return fmt.Sprintf("sqlite: %s is in use by another process, which may know it by another name", path)
	}
	return fmt.Sprintf("sqlite: %s is in use by pid %d", path, e.PID)
}

// fileLock is a lock of the operating system, which ends with the process
// however that ends. The file stays: removing it would race with the next one.
type fileLock struct {
	file *os.File
}

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	isTaken, err := filelock.TryLock(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: lock %s: %w", path, err), f.Close())
	}
	if isTaken {
		return nil, errors.Join(&InUseError{Path: path, PID: readPID(f)}, f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: %w", err), f.Close())
	}
	return &fileLock{file: f}, nil
}

func (l *fileLock) releaseLock() error { return l.file.Close() }

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	data, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}
