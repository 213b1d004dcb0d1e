package codec

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/payload"
)

// A packed record says what the JSON one says in a third to a tenth of the
// bytes. After the byte that says which version it is come fields: the number
// of the field and its value. The first byte of a value says what it is.
const (
	// packedVersionBase is the first byte of the first version; no JSON text begins with
	// it, and none that seal writes.
	packedVersionBase = 0x80
	packedVersionByte = packedVersionBase | PackedVersion
	packedVersionMax  = 0x8f

	vSmall        = 0x00 // and above: a number below 48; 0 is also no text and no time
	vShort        = 0x30 // and above: a text of less than 64 bytes
	vReference    = 0x70 // and above: one of the first 48 texts of the record once more
	vWord         = 0xa0 // and above: see word
	vNumber       = 0xe0 // a varint
	vNegative     = 0xe1 // likewise, of -1-n
	vText         = 0xe2 // length and bytes
	vJSON         = 0xe3 // likewise, of a value of a user
	vNull         = 0xe4 // the value null
	vHex          = 0xe5 // a text of hexadecimal digits: number of bytes, bytes
	vNumberedID   = 0xe6 // a text of 12 digits, a hyphen and 8 digits, all hexadecimal: varint, 4 bytes
	vBranch       = 0xe7 // a text that begins with "branch:to:", and what follows it as a text
	vFarReference = 0xe8 // another text of the record once more: varint
	vTime         = 0xe9 // nanoseconds since 1970: 8 bytes
	vTimeDelta    = 0xea // nanoseconds since the time before: zigzag varint
	vFarTime      = 0xeb // a time that has no such number: length and RFC 3339
	vTrue         = 0xec
	vFalse        = 0xed
	vObject       = 0xee // fields up to fEnd
	vArray        = 0xef // values up to vEnd
	vDigest       = 0xf0 // a text that is "sha-" and hexadecimal digits: number of bytes, bytes
	vEnd          = 0xff

	branchPrefix = "branch:to:"
	digestPrefix = "sha-" // begins the version of a graph that was given none
)

// Texts that a record has several times are written once. What is longer or
// comes later than this is always written.
const (
	maxText  = 255
	maxTexts = 1 << 12
)

// packer knows the texts of a record, and its last time.
type packer struct {
	slots      [128]uint16 // number of a text plus 1, by its hash
	firstTexts [48]string
	moreTexts  []string
	count      int
	lastTime   int64
}

func hashText(s string) byte {
	n := len(s)
	h := uint(n)*31 + uint(s[n-1])*131 + uint(s[n-2])*17 + uint(s[n/2])*7 + uint(s[0])
	return byte(h^h>>7) & 127
}

// findOrAdd finds a text of the record, or takes it up.
func (p *packer) findOrAdd(s string) (n int, ok bool) {
	slot := &p.slots[hashText(s)]
	if n := int(*slot) - 1; n >= 0 && p.textAt(n) == s {
		return n, true
	}
	if p.count == maxTexts {
		return 0, false
	}
	if p.count < len(p.firstTexts) {
		p.firstTexts[p.count] = s
	} else {
		p.moreTexts = append(p.moreTexts, s)
	}
	p.count++
	*slot = uint16(p.count)
	return 0, false
}

func (p *packer) textAt(n int) string {
	if n < len(p.firstTexts) {
		return p.firstTexts[n]
	}
	return p.moreTexts[n-len(p.firstTexts)]
}

// isShared reports whether a text is one that a record says once.
func isShared(s string) bool { return len(s) >= 2 && len(s) <= maxText }

// packEmpty says in a packed record that a field has no value, where leaving it out
// would say something else.
func (w *recordWriter) packEmpty(name field, is bool) {
	if is {
		w.buf = append(w.buf, byte(name), vSmall)
	}
}

// packString appends a text. Bytes that are not UTF-8 become U+FFFD, as in JSON.
func (w *recordWriter) packString(s string) {
	if n := wordNumber(s); n > 0 {
		w.buf = append(w.buf, vWord+n)
		return
	}
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if !isShared(s) {
		w.buf = packText(w.buf, s)
		return
	}
	if rest, ok := strings.CutPrefix(s, branchPrefix); ok {
		w.packBranch(s, rest)
		return
	}
	w.packShared(s)
}

func (w *recordWriter) packShared(s string) {
	if n, ok := w.packer.findOrAdd(s); ok {
		w.buf = packReference(w.buf, n)
		return
	}
	w.buf = packText(w.buf, s)
}

// packBranch appends a text that is a prefix and a rest. The rest comes first in
// the order of texts.
func (w *recordWriter) packBranch(s, rest string) {
	if n, ok := w.packer.findText(s); ok {
		w.buf = packReference(w.buf, n)
		return
	}
	w.buf = append(w.buf, vBranch)
	switch n := wordNumber(rest); {
	case n > 0:
		w.buf = append(w.buf, vWord+n)
	case isShared(rest):
		w.packShared(rest)
	default:
		w.buf = packText(w.buf, rest)
	}
	w.packer.findOrAdd(s)
}

// findText looks for a text without taking it up.
func (p *packer) findText(s string) (n int, ok bool) {
	n = int(p.slots[hashText(s)]) - 1
	return n, n >= 0 && p.textAt(n) == s
}

func packReference(b []byte, n int) []byte {
	if n < vWord-vReference {
		return append(b, vReference+byte(n))
	}
	return binary.AppendUvarint(append(b, vFarReference), uint64(n))
}

func packText(b []byte, s string) []byte {
	if len(s) >= 8 && isHex(s) && len(s)%2 == 0 && len(s) <= maxText {
		b = append(b, vHex, byte(len(s)/2))
		return packHex(b, s)
	}
	if rest, ok := strings.CutPrefix(s, digestPrefix); ok && len(rest) >= 4 && isHex(rest) && len(rest)%2 == 0 && len(s) <= maxText {
		b = append(b, vDigest, byte(len(rest)/2))
		return packHex(b, rest)
	}
	if n, ok := parseNumberedID(s); ok {
		b = binary.AppendUvarint(append(b, vNumberedID), n)
		return packHex(b, s[13:])
	}
	if len(s) < vReference-vShort {
		return append(append(b, vShort+byte(len(s))), s...)
	}
	b = binary.AppendUvarint(append(b, vText), uint64(len(s)))
	return append(b, s...)
}

// parseNumberedID reads the number in the id of a checkpoint.
func parseNumberedID(s string) (n uint64, ok bool) {
	if len(s) != 21 || s[12] != '-' || !isHex(s[:12]) || !isHex(s[13:]) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:12], 16, 64)
	return n, err == nil
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// packHex appends the bytes that an even number of digits stands for.
func packHex(b []byte, s string) []byte {
	digit := func(c byte) byte {
		if c >= 'a' {
			return c - 'a' + 10
		}
		return c - '0'
	}
	for i := 0; i+1 < len(s); i += 2 {
		b = append(b, digit(s[i])<<4|digit(s[i+1]))
	}
	return b
}

func unpackHex(s string) string { return hex.EncodeToString([]byte(s)) }

func packNumber(b []byte, kind byte, n uint64) []byte {
	if kind == vNumber && n < vShort {
		return append(b, byte(n))
	}
	return binary.AppendUvarint(append(b, kind), n)
}

func packValue(b []byte, v payload.JSON) []byte {
	if v == "null" {
		return append(b, vNull)
	}
	b = binary.AppendUvarint(append(b, vJSON), uint64(len(v)))
	return append(b, v...)
}

// packTime appends a time, as the distance from the one before it.
func (w *recordWriter) packTime(t time.Time) {
	if y := t.Year(); y < 1678 || y > 2261 {
		text := t.UTC().Format(time.RFC3339Nano)
		w.buf = append(w.buf, vFarTime, byte(len(text)))
		w.buf = append(w.buf, text...)
		return
	}
	n := t.UnixNano()
	if w.packer.lastTime == 0 {
		w.buf = binary.BigEndian.AppendUint64(append(w.buf, vTime), uint64(n))
	} else {
		w.buf = binary.AppendVarint(append(w.buf, vTimeDelta), n-w.packer.lastTime)
	}
	w.packer.lastTime = n
}
