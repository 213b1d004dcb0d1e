package sqlite

import "golang.org/x/sys/unix"

// lockOfFile locks for the open file, not for the process: what SQLite closes
// does not let go of it.
const lockOfFile = unix.F_OFD_SETLK
