//go:build windows

package file

import (
	"os"

	"github.com/graphd-dev/graphd/internal/filelock"
)

// tryLockDatabase locks a database, or reports that another process holds the lock. The
// byte that TryLock locks is none that SQLite ever locks.
func tryLockDatabase(f *os.File) (isTaken bool, err error) { return filelock.TryLock(f) }
