//go:build !linux && !darwin

package sqlite

import "math"

// diskFree is not known here: only a failed write tells that a disk is full.
func diskFree(string) int64 { return math.MaxInt64 }

// fileLimit is not known here.
func fileLimit() int64 { return math.MaxInt64 }

// noRoom is not known here: SQLite reports a full disk by itself.
func noRoom(error) bool { return false }
