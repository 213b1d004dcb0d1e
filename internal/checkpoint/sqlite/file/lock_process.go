//go:build unix && !linux

package file

import "golang.org/x/sys/unix"

// setLockCommand locks for the process: there are no locks of open files here, and
// another process is what must be kept away.
const setLockCommand = unix.F_SETLK
