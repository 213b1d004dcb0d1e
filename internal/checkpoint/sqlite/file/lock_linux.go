package file

import "golang.org/x/sys/unix"

// setLockCommand locks for the open file, not for the process: what SQLite closes
// does not release it.
const setLockCommand = unix.F_OFD_SETLK
