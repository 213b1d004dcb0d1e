package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// page writes text for people, in colour when they can see it.
type page struct {
	w     io.Writer
	color bool
	err   error
}

// Colours of the terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p *page) paint(code, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// wide is how long a line may get before a value is broken.
const wide = 110

// pairs writes keys and their JSON values, aligned; long values are broken
// into lines below their key.
func (p *page) pairs(indent string, list []member) {
	width := 0
	for _, m := range list {
		width = max(width, utf8.RuneCountInString(m.key))
	}
	for _, m := range list {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(m.key)+2)
		value := p.value(indent+"  ", m.value)
		if strings.HasPrefix(value, "\n") {
			pad = ""
		}
		p.line("%s%s%s%s", indent, p.paint(cyan, m.key), pad, value)
	}
}

// value is JSON text for people: on one line if it fits, else on lines of its
// own, broken only where it has to be.
func (*page) value(indent, text string) string {
	short := Compact(text)
	if fits(indent, short) {
		return short
	}
	return "\n" + indent + broken(indent, short)
}

func fits(indent, text string) bool {
	return len(indent)+utf8.RuneCountInString(text) <= wide
}

// broken writes one line per element of a value that does not fit on one.
func broken(indent, text string) string {
	if fits(indent, text) {
		return text
	}
	inner := indent + "  "
	var lines []string
	opened, closed := "[", "]"
	if list := members(text); len(list) > 0 {
		opened, closed = "{", "}"
		for _, m := range list {
			lines = append(lines, inner+jsonString(m.key)+": "+broken(inner, m.value))
		}
	} else {
		for _, e := range elements(text) {
			lines = append(lines, inner+broken(inner, e))
		}
	}
	if len(lines) == 0 {
		return text
	}
	return opened + "\n" + strings.Join(lines, ",\n") + "\n" + indent + closed
}

// table writes rows in columns; the last column is not padded. The first row
// is the head.
func (p *page) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if n == 0 {
			line = p.paint(dim, line)
		}
		p.line("%s", line)
	}
}
