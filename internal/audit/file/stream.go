package file

import (
	"context"
	"io"
	"strings"

	"github.com/graphd-dev/graphd/internal/audit"
)

// Stream is a sink that writes lines to a writer, from number 1 on.
type Stream struct {
	to    io.Writer
	lines lineWriter
}

// NewStream makes a Stream.
func NewStream(to io.Writer) *Stream { return &Stream{to: to} }

// WriteRecords writes records. The error is that of the writer.
func (s *Stream) WriteRecords(_ context.Context, list []audit.Record) (written int, err error) {
	return s.lines.writeRecords(s.to, list)
}

// lineWriter writes the lines of a chain. After an error it goes on behind what was
// written.
type lineWriter struct {
	chain      audit.Chain
	fragment   []byte // what the last write left behind the last line
	lacksBreak bool   // of the last line only the break was not written
	buffer     []byte
}

// writeRecords writes lines in one write, and returns how many records it has written
// completely.
func (w *lineWriter) writeRecords(to io.Writer, list []audit.Record) (written int, err error) {
	w.buffer = w.buffer[:0]
	chain := w.chain
	if w.endsAmidLine() {
		w.buffer = append(w.buffer, '\n')
	}
	if len(w.fragment) > 0 {
		chain = chain.SkipFragment(w.fragment)
	}
	start := len(w.buffer)
	ends, chains := make([]int, len(list)), make([]audit.Chain, len(list))
	for i := range list {
		if w.buffer, chain, err = chain.AppendRecord(w.buffer, &list[i]); err != nil {
			return 0, err
		}
		ends[i], chains[i] = len(w.buffer), chain
	}
	n, err := to.Write(w.buffer)
	if n == 0 {
		return 0, err
	}
	w.leaveLine()
	at := start
	for written < len(list) && ends[written]-1 <= n {
		w.chain, at = chains[written], min(ends[written], n)
		w.lacksBreak = n < ends[written]
		written++
	}
	w.fragment = append(w.fragment, w.buffer[max(at, start):max(n, start)]...)
	return written, err
}

// endsAmidLine reports whether a break has to be written first.
func (w *lineWriter) endsAmidLine() bool { return w.lacksBreak || len(w.fragment) > 0 }

// leaveLine goes on in another line, and leaves what the last write has left.
func (w *lineWriter) leaveLine() {
	if len(w.fragment) > 0 {
		w.chain = w.chain.SkipFragment(w.fragment)
	}
	w.fragment, w.lacksBreak = nil, false
}

// continueText goes on behind the end of a file, and reports whether the lines are those
// of an audit. isWhole says that the text is all of the file.
func (w *lineWriter) continueText(text string, isWhole bool) bool {
	lines := strings.Split(text, "\n")
	last := len(lines) - 1
	first := last // the last line that is a record
	for ; first >= 0; first-- {
		l, err := audit.ParseLine([]byte(lines[first]))
		if err == nil {
			w.chain, w.lacksBreak = audit.ContinueAfter(&l, []byte(lines[first])), first == last
			break
		}
		if lines[first] != "" && !audit.BeginsLine(lines[first]) || first == 0 && !isWhole {
			return false
		}
	}
	for i := first + 1; i <= last; i++ { // what writes have left
		if i == last {
			w.fragment = []byte(lines[i])
		} else {
			w.chain = w.chain.SkipFragment([]byte(lines[i]))
		}
	}
	return true
}
