package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/visible"
)

// text is fit for a terminal: what came from a graph or a client in it is
// visible, and the only escapes are our colours. It is made of constants, by
// plain and by paint.
type text string

// plain makes a text of what came from elsewhere, on one line.
func plain(s string) text { return text(visible.Line(s)) }

// page writes text for people, in colour when they can see it. All that a
// command prints goes through it, or through Page, JSON and Error in this file.
type page struct {
	w     io.Writer
	color bool
	err   error

	// replaced are questions in whose place others were asked, by id.
	replaced map[string]*graphdv1.Interrupt
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

// paint makes a text of what came from elsewhere, in colour.
func (p *page) paint(code, s string) text { return p.paintText(code, plain(s)) }

func (p *page) paintText(code string, t text) text {
	if !p.color || t == "" {
		return t
	}
	return "\x1b[" + text(code) + "m" + t + "\x1b[0m"
}

// line writes a line. Text that is not made visible yet is.
func (p *page) line(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	p.print(format+"\n", args...)
}

func (p *page) print(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	if p.err != nil {
		return
	}
	_, p.err = fmt.Fprintf(p.w, format, shownArgs(args)...)
}

// isPrintf guards calls that are never made: by them go vet knows a function
// that wraps fmt.Printf, and checks formats and arguments of its callers.
const isPrintf = false

// shownArgs makes what came from elsewhere visible, however a verb formats it.
func shownArgs(args []any) []any {
	shown := make([]any, len(args))
	for i, arg := range args {
		if _, done := arg.(text); done {
			shown[i] = arg
		} else {
			shown[i] = foreign{arg}
		}
	}
	return shown
}

// foreign is an argument that is formatted first and then made visible.
type foreign struct{ value any }

// Format implements fmt.Formatter.
func (a foreign) Format(b fmt.State, verb rune) {
	_, _ = io.WriteString(b, visible.Line(fmt.Sprintf(fmt.FormatString(b, verb), a.value))) // into a buffer of fmt
}

// Line writes a line for people; what its arguments hold is made visible.
func Line(w io.Writer, format string, args ...any) error {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	p := &page{w: w}
	p.line(format, args...)
	return p.err
}

// Document writes a text of several lines.
func Document(w io.Writer, document string) error {
	_, err := io.WriteString(w, visible.Output(document))
	return err
}

// WriteJSON writes JSON text and ends the line. Characters that a terminal
// obeys or hides are escaped.
func WriteJSON(w io.Writer, document []byte) error {
	_, err := io.WriteString(w, visible.JSON(strings.TrimRight(string(document), "\n"))+"\n")
	return err
}

// WriteValue writes a value as JSON, in the given format.
func WriteValue(w io.Writer, format Format, value any) error {
	var b bytes.Buffer
	write := json.NewEncoder(&b)
	write.SetEscapeHTML(false)
	if format == JSON {
		write.SetIndent("", "  ")
	}
	if err := write.Encode(value); err != nil {
		return err
	}
	return WriteJSON(w, b.Bytes())
}

// wide is how long a line may get before a value is broken.
const wide = 110

// pairs writes keys and their JSON values, aligned; long values are broken
// into lines below their key.
func (p *page) pairs(indent string, list []member) {
	width, keys := 0, make([]text, len(list))
	for i, m := range list {
		keys[i] = plain(m.key)
		width = max(width, wideness(keys[i]))
	}
	for i, m := range list {
		pad := strings.Repeat(" ", width-wideness(keys[i])+2)
		value := p.value(indent+"  ", m.value)
		if strings.HasPrefix(string(value), "\n") {
			pad = ""
		}
		p.line("%s%s%s%s", indent, p.paintText(cyan, keys[i]), pad, value)
	}
}

// value is JSON text for people: on one line if it fits, else on lines of its
// own, broken only where it has to be.
func (*page) value(indent, value string) text {
	short := visible.JSON(Compact(value))
	if !json.Valid([]byte(short)) {
		return plain(short)
	}
	if fits(indent, short) {
		return text(short)
	}
	return text("\n" + indent + visible.JSON(broken(indent, short)))
}

// wideness is how many columns a text without colours takes.
func wideness(t text) int { return utf8.RuneCountInString(string(t)) }

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
		for i := range row {
			row[i] = string(plain(row[i]))
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
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
		line := text(strings.TrimRight(b.String(), " "))
		if n == 0 {
			line = p.paintText(dim, line)
		}
		p.line("%s", line)
	}
}
