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

// safeText is fit for a terminal: what came from a graph or a client in it is
// visible, and the only escapes are our colours. It is made of constants, by
// makeSafe and by colorize.
type safeText string

// makeSafe makes a text of what came from elsewhere, on one line.
func makeSafe(s string) safeText { return safeText(visible.Line(s)) }

// printer writes text for people, in colour when they can see it. All that a
// command prints goes through it, or through WriteLine, WriteDocument, WriteJSON
// and WriteValue in this file.
type printer struct {
	out      io.Writer
	hasColor bool
	err      error

	// replacedInterrupts are questions in whose place others were asked, by id.
	replacedInterrupts map[string]*graphdv1.Interrupt
}

// newPrinter makes a printer without colours.
func newPrinter(w io.Writer) *printer { return &printer{out: w} }

// writeError returns why output could not be written; nothing is written after that.
func (p *printer) writeError() error { return p.err }

// Colours of the terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// colorize makes a text of what came from elsewhere, in colour.
func (p *printer) colorize(code, s string) safeText { return p.colorizeSafe(code, makeSafe(s)) }

func (p *printer) colorizeSafe(code string, t safeText) safeText {
	if !p.hasColor || t == "" {
		return t
	}
	return "\x1b[" + safeText(code) + "m" + t + "\x1b[0m"
}

// printLine writes a line. Text that is not made visible yet is.
func (p *printer) printLine(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	p.printText(format+"\n", args...)
}

func (p *printer) printText(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	if p.err != nil {
		return
	}
	_, p.err = fmt.Fprintf(p.out, format, makeArgsSafe(args)...)
}

// isPrintf guards calls that are never made: by them go vet knows a function
// that wraps fmt.Printf, and checks formats and arguments of its callers.
const isPrintf = false

// makeArgsSafe makes what came from elsewhere visible, however a verb formats it.
func makeArgsSafe(args []any) []any {
	shown := make([]any, len(args))
	for i, arg := range args {
		if _, done := arg.(safeText); done {
			shown[i] = arg
		} else {
			shown[i] = untrustedArg{arg}
		}
	}
	return shown
}

// untrustedArg is an argument that is formatted first and then made visible.
type untrustedArg struct{ value any }

// Format implements fmt.Formatter.
func (a untrustedArg) Format(b fmt.State, verb rune) {
	_, _ = io.WriteString(b, visible.Line(fmt.Sprintf(fmt.FormatString(b, verb), a.value))) // into a buffer of fmt
}

// WriteLine writes a line for people; what its arguments hold is made visible.
func WriteLine(w io.Writer, format string, args ...any) error {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	p := newPrinter(w)
	p.printLine(format, args...)
	return p.err
}

// WriteDocument writes a text of several lines.
func WriteDocument(w io.Writer, document string) error {
	_, err := io.WriteString(w, visible.Output(document))
	return err
}

// WriteJSON writes JSON text and ends the line. Characters that a terminal
// interprets or hides are escaped.
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

// maxLineWidth is how long a line may get before a value is broken.
const maxLineWidth = 110

// printMembers writes keys and their JSON values, aligned; long values are broken
// into lines below their key.
func (p *printer) printMembers(indent string, list []member) {
	width, keys := 0, make([]safeText, len(list))
	for i, m := range list {
		keys[i] = makeSafe(m.key)
		width = max(width, textWidth(keys[i]))
	}
	for i, m := range list {
		pad := strings.Repeat(" ", width-textWidth(keys[i])+2)
		value := p.formatValue(indent+"  ", m.value)
		if strings.HasPrefix(string(value), "\n") {
			pad = ""
		}
		p.printLine("%s%s%s%s", indent, p.colorizeSafe(cyan, keys[i]), pad, value)
	}
}

// formatValue is JSON text for people: on one line if it fits, else on lines of its
// own, broken only where it has to be.
func (*printer) formatValue(indent, value string) safeText {
	short := visible.JSON(Compact(value))
	if !json.Valid([]byte(short)) {
		return makeSafe(short)
	}
	if fitsLine(indent, short) {
		return safeText(short)
	}
	return safeText("\n" + indent + visible.JSON(breakValue(indent, short)))
}

// textWidth is how many columns a text without colours takes.
func textWidth(t safeText) int { return utf8.RuneCountInString(string(t)) }

func fitsLine(indent, text string) bool {
	return len(indent)+utf8.RuneCountInString(text) <= maxLineWidth
}

// breakValue writes one line per element of a value that does not fit on one.
func breakValue(indent, text string) string {
	if fitsLine(indent, text) {
		return text
	}
	inner := indent + "  "
	var lines []string
	opened, closed := "[", "]"
	if list := splitObject(text); len(list) > 0 {
		opened, closed = "{", "}"
		for _, m := range list {
			lines = append(lines, inner+jsonString(m.key)+": "+breakValue(inner, m.value))
		}
	} else {
		for _, e := range splitArray(text) {
			lines = append(lines, inner+breakValue(inner, e))
		}
	}
	if len(lines) == 0 {
		return text
	}
	return opened + "\n" + strings.Join(lines, ",\n") + "\n" + indent + closed
}

// printTable writes rows in columns; the last column is not padded. The first row
// is the head.
func (p *printer) printTable(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i := range row {
			row[i] = string(makeSafe(row[i]))
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
		line := safeText(strings.TrimRight(b.String(), " "))
		if n == 0 {
			line = p.colorizeSafe(dim, line)
		}
		p.printLine("%s", line)
	}
}
