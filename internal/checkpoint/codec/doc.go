// Package codec is the written form of what stores keep. A record has two: a
// JSON object, so that any tool can read it, and a packed one, for stores that
// keep everything in memory and hand every byte around several times. Both say
// the same, and what reads records takes either.
//
// Every record begins with its format's version. A record of a newer version
// is refused, never guessed at; fields that this version does not know are
// skipped. User values stand in the record as they came, byte for byte.
package codec

import (
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Version is the newest version of the format that this package reads, and
// the one it writes.
const Version = 1

// PackedVersion is the same for packed records.
const PackedVersion = 1

// MaxInlineBytes is the size in bytes up to which the value of a channel stands in
// the checkpoint's record; a larger one is stored beside it.
const MaxInlineBytes = 128

// VersionError says that a record was written by a newer graphd. It wraps
// checkpoint.ErrCorrupt.
type VersionError struct {
	Version uint64
	Packed  bool
}

// Error names the version.
func (e *VersionError) Error() string {
	known := Version
	if e.Packed {
		known = PackedVersion
	}
	return fmt.Sprintf("%v: format version %d, this graphd reads up to %d", checkpoint.ErrCorrupt, e.Version, known)
}

// Unwrap returns checkpoint.ErrCorrupt.
func (*VersionError) Unwrap() error { return checkpoint.ErrCorrupt }
