//go:build !linux && !darwin

package file

import "math"

// FreeBytes is not known here: only a failed write tells that a disk is full.
func FreeBytes(string) int64 { return math.MaxInt64 }

// SizeLimit is not known here.
func SizeLimit() int64 { return math.MaxInt64 }

// isOutOfSpace is not known here: SQLite reports a full disk by itself.
func isOutOfSpace(error) bool { return false }
