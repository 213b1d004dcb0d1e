package packed

import (
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Writer appends fields to a record. A field that says nothing is left out.
type Writer struct {
	buf      []byte
	texts    textTable
	lastTime int64
}

// NewWriter begins a record that is appended to b.
func NewWriter(b []byte) *Writer { return &Writer{buf: append(b, versionByte)} }

// Bytes returns the appended record, after the bytes before it.
func (w *Writer) Bytes() []byte { return w.buf }

// OpenObject begins an object, CloseObject ends it.
func (w *Writer) OpenObject(f Field) { w.buf = append(w.buf, byte(f), vObject) }

// CloseObject ends an object.
func (w *Writer) CloseObject() { w.buf = append(w.buf, byte(endOfObject)) }

// OpenArray begins an array, CloseArray ends it.
func (w *Writer) OpenArray(f Field) { w.buf = append(w.buf, byte(f), vArray) }

// CloseArray ends an array.
func (w *Writer) CloseArray() { w.buf = append(w.buf, vEnd) }

// OpenElement begins an object in an array; CloseObject ends it.
func (w *Writer) OpenElement() { w.buf = append(w.buf, vObject) }

// WriteEmpty says that a field has no value, where leaving it out would say
// something else.
func (w *Writer) WriteEmpty(f Field, is bool) {
	if is {
		w.buf = append(w.buf, byte(f), vSmall)
	}
}

// WriteString writes a text. Bytes that are not UTF-8 become U+FFFD.
func (w *Writer) WriteString(f Field, v string) {
	if v != "" {
		w.buf = append(w.buf, byte(f))
		w.packString(v)
	}
}

// AppendString writes a text in an array.
func (w *Writer) AppendString(v string) { w.packString(v) }

// WriteJSON writes a value of a user.
func (w *Writer) WriteJSON(f Field, v payload.JSON) {
	if v != "" {
		w.buf = packValue(append(w.buf, byte(f)), v)
	}
}

// WriteInt writes a number of either sign.
func (w *Writer) WriteInt(f Field, v int64) {
	switch {
	case v < 0:
		w.buf = packNumber(append(w.buf, byte(f)), vNegative, uint64(-(v + 1)))
	case v > 0:
		w.buf = packNumber(append(w.buf, byte(f)), vNumber, uint64(v))
	}
}

// WriteUint writes a number.
func (w *Writer) WriteUint(f Field, v uint64) {
	if v != 0 {
		w.buf = packNumber(append(w.buf, byte(f)), vNumber, v)
	}
}

// WriteBool writes a flag that is set.
func (w *Writer) WriteBool(f Field, v bool) {
	if v {
		w.buf = append(w.buf, byte(f), vTrue)
	}
}

// WriteTime writes a time.
func (w *Writer) WriteTime(f Field, v time.Time) {
	if !v.IsZero() {
		w.buf = append(w.buf, byte(f))
		w.packTime(v)
	}
}

// WriteDuration writes a duration, in nanoseconds.
func (w *Writer) WriteDuration(f Field, v time.Duration) { w.WriteInt(f, int64(v)) }

// WriteStrings writes a list of texts.
func (w *Writer) WriteStrings(f Field, v []string) {
	if len(v) == 0 {
		return
	}
	w.OpenArray(f)
	for _, s := range v {
		w.packString(s)
	}
	w.CloseArray()
}

// WriteMap writes the keys in order, so that equal records are equal bytes.
func (w *Writer) WriteMap(f Field, v map[string]string) {
	if len(v) == 0 {
		return
	}
	w.OpenArray(f)
	for _, k := range slices.Sorted(maps.Keys(v)) {
		w.packString(k)
		w.packString(v[k])
	}
	w.CloseArray()
}

// packString appends a text. Bytes that are not UTF-8 become U+FFFD, as in JSON.
func (w *Writer) packString(s string) {
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

func (w *Writer) packShared(s string) {
	if n, ok := w.texts.findOrAdd(s); ok {
		w.buf = packReference(w.buf, n)
		return
	}
	w.buf = packText(w.buf, s)
}

// packBranch appends a text that is a prefix and a rest. The rest comes first in
// the order of texts.
func (w *Writer) packBranch(s, rest string) {
	if n, ok := w.texts.findText(s); ok {
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
	w.texts.findOrAdd(s)
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

// packTime appends a time, as the distance from the time before it.
func (w *Writer) packTime(t time.Time) {
	if y := t.Year(); y < 1678 || y > 2261 {
		text := t.UTC().Format(time.RFC3339Nano)
		w.buf = append(w.buf, vFarTime, byte(len(text)))
		w.buf = append(w.buf, text...)
		return
	}
	n := t.UnixNano()
	if w.lastTime == 0 {
		w.buf = binary.BigEndian.AppendUint64(append(w.buf, vTime), uint64(n))
	} else {
		w.buf = binary.AppendVarint(append(w.buf, vTimeDelta), n-w.lastTime)
	}
	w.lastTime = n
}
