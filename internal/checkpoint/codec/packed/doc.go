// Package packed encodes the fields of a record: the number of a field and its
// value, repeated texts once, times as distances from the time before.
//
// A record begins with its version. A newer version is refused, never guessed at;
// fields that this version does not know can be skipped. Values of users stand in
// the record as they came, byte for byte.
package packed

import (
	"fmt"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Version is the newest version of the form that this package reads, and the
// version that it writes.
const Version = 1

// A Field is the number of a field; 0 ends an object.
type Field uint8

const endOfObject Field = 0

// The first byte of a record is the version. No JSON text begins with these bytes,
// nor any text of package seal.
const (
	versionBase = 0x80
	versionByte = versionBase | Version
	versionMax  = 0x8f
)

// The first byte of a value is its kind.
const (
	vSmall        = 0x00 // and above: a number below 48; 0 is also no text and no time
	vShort        = 0x30 // and above: a text of less than 64 bytes
	vReference    = 0x70 // and above: one of the first 48 texts of the record once more
	vWord         = 0xa0 // and above: see words
	vNumber       = 0xe0 // a varint
	vNegative     = 0xe1 // likewise, of -1-n
	vText         = 0xe2 // length and bytes
	vJSON         = 0xe3 // likewise, of a value of a user
	vNull         = 0xe4 // the value null
	vHex          = 0xe5 // a text of hexadecimal digits: number of bytes, bytes
	vNumberedID   = 0xe6 // a text of 12 digits, a hyphen and 8 digits, all hexadecimal: varint, 4 bytes
	vBranch       = 0xe7 // a text that begins with "branch:to:", and the rest of it as a text
	vFarReference = 0xe8 // another text of the record once more: varint
	vTime         = 0xe9 // nanoseconds since 1970: 8 bytes
	vTimeDelta    = 0xea // nanoseconds since the time before: zigzag varint
	vFarTime      = 0xeb // a time that has no such number: length and RFC 3339
	vTrue         = 0xec
	vFalse        = 0xed
	vObject       = 0xee // fields up to endOfObject
	vArray        = 0xef // values up to vEnd
	vDigest       = 0xf0 // a text that is "sha-" and hexadecimal digits: number of bytes, bytes
	vEnd          = 0xff

	branchPrefix = "branch:to:"
	digestPrefix = "sha-" // begins the version of a graph that was given none
)

// Texts that a record has several times are written once. Texts that are longer
// or come later than this are always written.
const (
	maxText  = 255
	maxTexts = 1 << 12
)

// isShared reports whether a record writes a text once.
func isShared(s string) bool { return len(s) >= 2 && len(s) <= maxText }

// VersionError says that a record was written by a newer graphd. It wraps
// checkpoint.ErrCorrupt.
type VersionError struct {
	Version uint64
}

// Error names the version.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: format version %d, this graphd reads up to %d", checkpoint.ErrCorrupt, e.Version, Version)
}

// Unwrap returns checkpoint.ErrCorrupt.
func (*VersionError) Unwrap() error { return checkpoint.ErrCorrupt }
