package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/visible"
)

// LineVersion is the version of the form of lines. A field may be added without a new
// version; readers skip fields that they don't know.
const LineVersion = 1

// MaxLineBytes bounds a line.
const MaxLineBytes = 1 << 20

// Line is a record as text has it: its place in the chain, and the record.
type Line struct {
	Version int `json:"v"`
	// Sequence is the number of the line: 1 more than that of the line before it, also
	// across files.
	Sequence uint64 `json:"seq"`
	// Before is the digest of the line before this one; "" = there is none.
	Before string `json:"prev"`
	Record
}

// LineError says why a line is no record.
type LineError struct {
	Is   string
	Want string
}

// Error names the problem and what would be right.
func (e *LineError) Error() string { return "the line " + e.Is + ": want " + e.Want }

// appendLine appends a line without its break. What a terminal
// would interpret or hide is an escape of JSON.
func appendLine(b []byte, l *Line) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		return b, err
	}
	return append(b, visible.JSON(strings.TrimSuffix(buffer.String(), "\n"))...), nil
}

// ParseLine reads a line. The error is a *LineError.
func ParseLine(text []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(text, &l); err != nil {
		return Line{}, &LineError{Is: "is not a record: " + describeJSONError(err), Want: "a JSON object as graphd writes it"}
	}
	switch {
	case l.Version != LineVersion:
		return Line{}, &LineError{Is: fmt.Sprintf("has the version %d", l.Version), Want: fmt.Sprintf("version %d, or a newer graphd", LineVersion)}
	case l.Sequence == 0 || l.Kind == "":
		return Line{}, &LineError{Is: "has no number or no kind", Want: "a line as graphd writes it"}
	}
	return l, nil
}

func describeJSONError(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "the field " + wrong.Field + " has a wrong type"
	}
	return "it is no JSON"
}

// BeginsLine reports whether a text begins like a line. It may end anywhere.
func BeginsLine(text string) bool {
	const begin = `{"v":`
	return strings.HasPrefix(text, begin) || strings.HasPrefix(begin, text)
}

// digestLine returns the digest of a line without its break.
func digestLine(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Chain numbers lines and links each to the one before it. The zero value is the
// beginning of a chain.
type Chain struct {
	sequence uint64
	digest   string // of the last line
}

// AppendRecord appends the next line and its break to b, and returns the chain after
// it.
func (c Chain) AppendRecord(b []byte, r *Record) (text []byte, next Chain, err error) {
	start := len(b)
	l := Line{Version: LineVersion, Sequence: c.sequence + 1, Before: c.digest, Record: *r}
	b, err = appendLine(b, &l)
	if err != nil {
		return b[:start], c, err
	}
	next = Chain{sequence: l.Sequence, digest: digestLine(b[start:])}
	return append(b, '\n'), next, nil
}

// ContinueAfter returns the chain that goes on after a line of a file.
func ContinueAfter(l *Line, text []byte) Chain {
	return Chain{sequence: l.Sequence, digest: digestLine(text)}
}

// SkipFragment returns the chain that goes on after a part of a line, which a write
// has left at the end of a file.
func (c Chain) SkipFragment(text []byte) Chain {
	return Chain{sequence: c.sequence, digest: digestLine(text)}
}

// Last returns the number and the digest of the last line; 0 = there is none.
func (c Chain) Last() (sequence uint64, digest string) { return c.sequence, c.digest }
