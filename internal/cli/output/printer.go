package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/jsontext"
	"github.com/graphd-dev/graphd/internal/visible"
)

// SafeText is text that is fit for a terminal: control characters of graphs and
// clients are visible, and the only escapes are our colours. It is made of
// constants, by MakeSafe and by Colorize.
type SafeText string

// MakeSafe makes safe text of a foreign text, on one line.
func MakeSafe(s string) SafeText { return SafeText(visible.Line(s)) }

// Printer writes text for people, in colour if the terminal shows it. All output of
// commands goes through it, or through WriteLine, WriteDocument, WriteJSON and
// WriteValue in this file.
type Printer struct {
	out      io.Writer
	hasColor bool
	columns  int // of the terminal, 0 = none
	err      error

	// replacedInterrupts are questions that others have replaced, by id.
	replacedInterrupts map[string]*graphdv1.Interrupt
}

// NewPrinter makes a printer without colours.
func NewPrinter(w io.Writer) *Printer { return &Printer{out: w} }

// WriteError returns the first error of a write. The printer writes nothing after
// that.
func (p *Printer) WriteError() error { return p.err }

// Colours of the terminal.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	cyan   = "36"
)

// Colorize makes safe text of a foreign text, in colour.
func (p *Printer) Colorize(code, s string) SafeText { return p.colorizeSafe(code, MakeSafe(s)) }

func (p *Printer) colorizeSafe(code string, t SafeText) SafeText {
	if !p.hasColor || t == "" {
		return t
	}
	return "\x1b[" + SafeText(code) + "m" + t + "\x1b[0m"
}

// PrintLine writes a line. It makes arguments visible that are not safe yet.
func (p *Printer) PrintLine(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	p.PrintText(format+"\n", args...)
}

// PrintText writes text that need not end a line. It makes arguments visible that
// are not safe yet.
func (p *Printer) PrintText(format string, args ...any) {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	if p.err != nil {
		return
	}
	_, p.err = fmt.Fprintf(p.out, format, makeArgsSafe(args)...)
}

// isPrintf guards calls that are never made. They tell go vet that a function wraps
// fmt.Printf, so that it checks the formats and arguments of callers.
const isPrintf = false

// makeArgsSafe makes foreign arguments visible, whatever verb formats them.
func makeArgsSafe(args []any) []any {
	shown := make([]any, len(args))
	for i, arg := range args {
		if _, done := arg.(SafeText); done {
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

// WriteLine writes a line for people. It makes its arguments visible. Errors: those
// of w.
func WriteLine(w io.Writer, format string, args ...any) error {
	if isPrintf {
		_ = fmt.Sprintf(format, args...)
	}
	p := NewPrinter(w)
	p.PrintLine(format, args...)
	return p.err
}

// WriteDocument writes a text of several lines. Errors: those of w.
func WriteDocument(w io.Writer, document string) error {
	_, err := io.WriteString(w, visible.Output(document))
	return err
}

// WriteBytes writes what is not for a terminal, like a picture. Errors: those of w.
func WriteBytes(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

// WriteJSON writes JSON text and ends the line. Characters that a terminal
// interprets or hides are escaped. Errors: those of w.
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

// maxLineWidth is the width from which a value is broken into lines.
const maxLineWidth = 110

// PrintMembers writes keys and their JSON values, aligned; long values are broken
// into lines below their key.
func (p *Printer) PrintMembers(indent string, list []jsontext.Member) {
	width, keys := 0, make([]SafeText, len(list))
	for i, m := range list {
		keys[i] = MakeSafe(m.Key)
		width = max(width, textWidth(keys[i]))
	}
	for i, m := range list {
		pad := strings.Repeat(" ", width-textWidth(keys[i])+2)
		value := p.formatValue(indent+"  ", m.Value)
		if strings.HasPrefix(string(value), "\n") {
			pad = ""
		}
		p.PrintLine("%s%s%s%s", indent, p.colorizeSafe(cyan, keys[i]), pad, value)
	}
}

// formatValue formats JSON text for people: on one line if it fits, else on lines
// of its own, broken only where necessary.
func (*Printer) formatValue(indent, value string) SafeText {
	short := visible.JSON(jsontext.CompactText(value))
	if strings.Contains(short, redactedJSON) {
		short = strings.ReplaceAll(short, redactedJSON, secretText)
		if fitsLine(indent, short) {
			return SafeText(short)
		}
		return SafeText("\n" + indent + short)
	}
	if !json.Valid([]byte(short)) {
		return MakeSafe(short)
	}
	if fitsLine(indent, short) {
		return SafeText(short)
	}
	return SafeText("\n" + indent + visible.JSON(breakValue(indent, short)))
}

// redactedJSON stands in a value in the place of a part that is not shown; secretText is what people
// see in its place. In a string of JSON its quotes would be escaped.
const (
	redactedJSON = `{"__redacted__":true}`
	secretText   = "(secret)"
)

// isRedacted reports whether a value is secret as a whole.
func isRedacted(value string) bool { return jsontext.CompactText(value) == redactedJSON }

// textWidth returns the number of columns of a text without colours.
func textWidth(t SafeText) int { return countColumns(string(t)) }

func fitsLine(indent, text string) bool {
	return len(indent)+countColumns(text) <= maxLineWidth
}

// breakValue breaks a value that does not fit on one line into a line per element.
func breakValue(indent, text string) string {
	if fitsLine(indent, text) {
		return text
	}
	inner := indent + "  "
	var lines []string
	opened, closed := "[", "]"
	if list := jsontext.SplitObject(text); len(list) > 0 {
		opened, closed = "{", "}"
		for _, m := range list {
			lines = append(lines, inner+jsontext.QuoteString(m.Key)+": "+breakValue(inner, m.Value))
		}
	} else {
		for _, e := range jsontext.SplitArray(text) {
			lines = append(lines, inner+breakValue(inner, e))
		}
	}
	if len(lines) == 0 {
		return text
	}
	return opened + "\n" + strings.Join(lines, ",\n") + "\n" + indent + closed
}

// PrintTable writes rows in columns; the last column is not padded. The first row
// is the head.
func (p *Printer) PrintTable(rows [][]string) {
	for n, line := range alignRows(rows) {
		if n == 0 {
			line = p.colorizeSafe(Dim, line)
		}
		p.PrintLine("%s", line)
	}
}

// printColumns writes rows in columns, without a head.
func (p *Printer) printColumns(indent string, rows [][]string) {
	for _, line := range alignRows(rows) {
		p.PrintLine("%s%s", indent, line)
	}
}

// alignRows makes a line of each row, with the cells of a column below each other.
func alignRows(rows [][]string) []SafeText {
	var widths []int
	cells := make([][]SafeText, len(rows))
	for n, row := range rows {
		for i, text := range row {
			cell := MakeSafe(text)
			cells[n] = append(cells[n], cell)
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], textWidth(cell))
		}
	}
	lines := make([]SafeText, len(rows))
	for n, row := range cells {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(string(cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-textWidth(cell)+gapWidth))
			}
		}
		lines[n] = SafeText(strings.TrimRight(b.String(), " "))
	}
	return lines
}
