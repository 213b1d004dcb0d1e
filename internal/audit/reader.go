package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Entry is a line of a file, and what is wrong with it.
type Entry struct {
	Line
	Number  int      // of the line in the file, from 1
	IsValid bool     // the line is a record
	Defects []string // of the line, or of its place in the chain; none = as it was written
}

// Reader reads the lines of a file and checks that they are a chain: no line was
// changed, added, removed or moved since it was written. Who may write the file can
// make a new chain: a copy of the last number and digest, kept elsewhere, shows that.
type Reader struct {
	lines  *bufio.Reader
	buffer []byte // of a line that has no break yet
	number int
	chain  Chain
	isOpen bool // the chain has a first line
}

// NewReader makes a reader of a file.
func NewReader(from io.Reader) *Reader { return &Reader{lines: bufio.NewReaderSize(from, 64<<10)} }

// Next goes on with another file of the same chain, whose lines follow those before.
func (r *Reader) Next(from io.Reader) {
	r.lines.Reset(from)
	r.buffer, r.number = nil, 0
}

// Last returns the number and the digest of the last line that was read.
func (r *Reader) Last() (sequence uint64, digest string) { return r.chain.Last() }

// Read returns the next line. At the end it returns io.EOF, and keeps a line without
// a break for the next call: a server may write the rest of it. Flush returns that.
func (r *Reader) Read() (Entry, error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(r.buffer) < MaxLineBytes {
			r.buffer = append(r.buffer, part...)
		}
		switch {
		case err == nil:
			text := r.buffer
			if text[len(text)-1] == '\n' {
				text = text[:len(text)-1]
			}
			r.buffer = r.buffer[len(r.buffer):]
			return r.checkLine(text), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return Entry{}, err
		}
	}
}

// Flush returns the line that has no break, if there is one.
func (r *Reader) Flush() (Entry, bool) {
	if len(r.buffer) == 0 {
		return Entry{}, false
	}
	text := r.buffer
	r.buffer = nil
	e := r.checkLine(text)
	e.Defects = append(e.Defects, "the line has no end: a server has been ended while it wrote, or writes it now")
	return e, true
}

// checkLine parses a line and compares it with the chain.
func (r *Reader) checkLine(text []byte) Entry {
	r.number++
	e := Entry{Number: r.number}
	before := r.chain
	l, err := ParseLine(text)
	if err != nil {
		r.chain, r.isOpen = before.SkipFragment(text), true
		e.Defects = append(e.Defects, err.Error())
		return e
	}
	e.Line, e.IsValid = l, true
	if r.isOpen {
		e.Defects = before.findDefects(&l)
	}
	r.chain, r.isOpen = ContinueAfter(&l, text), true
	return e
}

// findDefects compares a line with the chain that it continues.
func (c Chain) findDefects(l *Line) []string {
	var list []string
	switch {
	case l.Sequence > c.sequence+1:
		list = append(list, fmt.Sprintf("%d lines are missing before number %d", l.Sequence-c.sequence-1, l.Sequence))
	case l.Sequence <= c.sequence:
		list = append(list, fmt.Sprintf("the number %d follows %d: a line was added or moved, or another chain begins", l.Sequence, c.sequence))
	}
	if l.Before != c.digest && len(list) == 0 {
		list = append(list, "the line before this one is not the one that was written")
	}
	return list
}
