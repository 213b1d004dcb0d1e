package output

import (
	"strings"
	"unicode"
)

// printMessageText prints a message with a bar before each line, which sets it apart from
// graphd's own lines. Markdown stays as it is written. Lines that are too long for the
// terminal are broken at spaces, but not those of code and of tables.
func (p *Printer) printMessageText(indent, message string) {
	isCode := false
	for line := range strings.Lines(strings.TrimRight(message, "\r\n")) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		text := strings.TrimSpace(line)
		isFence := strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")
		if isFence {
			isCode = !isCode
		}
		most := p.columns - len(indent) - len("| ")
		if p.columns == 0 || isCode || isFence || strings.HasPrefix(text, "|") {
			most = 0
		}
		for _, part := range wrapLine(MakeSafe(line), most) {
			p.PrintLine("%s%s%s", indent, p.Colorize(Dim, "| "), part)
		}
	}
}

// PrintWrapped prints a text in a colour, broken at spaces for the terminal.
func (p *Printer) PrintWrapped(code, text string) {
	for _, part := range wrapLine(MakeSafe(text), p.columns) {
		p.PrintLine("%s", p.colorizeSafe(code, part))
	}
}

// PrintPrompt prints a prompt like PrintWrapped, with a space and no end of the line after it.
func (p *Printer) PrintPrompt(text string) {
	parts := wrapLine(MakeSafe(strings.TrimRight(text, " ")), p.columns-1)
	for _, part := range parts[:len(parts)-1] {
		p.PrintLine("%s", p.colorizeSafe(Bold, part))
	}
	p.PrintText("%s", p.colorizeSafe(Bold, parts[len(parts)-1]+" "))
}

// printHeadline prints a line that begins with a name, which stands out.
func (p *Printer) printHeadline(name, rest string) {
	head := "  " + MakeSafe(name)
	parts := wrapLine(head+MakeSafe(rest), p.columns)
	if after, ok := strings.CutPrefix(string(parts[0]), string(head)); ok {
		parts[0] = "  " + p.Colorize(Bold, name) + SafeText(after)
	}
	for _, part := range parts {
		p.PrintLine("%s", part)
	}
}

// leastTextWidth is the width below which text is left to the terminal.
const leastTextWidth = 20

// wrapLine breaks a visible line at spaces so that each part takes at most so many columns;
// below leastTextWidth it does not. Further parts begin below the text of a list item or
// a quote.
func wrapLine(line SafeText, most int) []SafeText {
	if most < leastTextWidth || textWidth(line) <= most {
		return []SafeText{line}
	}
	hang := strings.Repeat(" ", min(len(itemStart(string(line))), most/2))
	var parts []SafeText
	part := itemStart(string(line))
	isEmpty := true
	for word := range strings.FieldsSeq(string(line[len(part):])) {
		if !isEmpty && countColumns(part)+1+countColumns(word) > most {
			parts = append(parts, SafeText(part))
			part, isEmpty = hang, true
		}
		if !isEmpty {
			part += " "
		}
		part, isEmpty = part+word, false
	}
	return append(parts, SafeText(part))
}

// itemStart returns what a line of a list or a quote has before its text: spaces and a mark
// like "- ", "1. " or "> ".
func itemStart(line string) string {
	text := strings.TrimLeft(line, " ")
	mark, _, ok := strings.Cut(text, " ")
	isNumber := len(mark) > 1 && strings.ContainsAny(mark[len(mark)-1:], ".)") &&
		strings.IndexFunc(mark[:len(mark)-1], func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	if !ok || !isNumber && mark != "-" && mark != "*" && mark != "+" && mark != ">" {
		return line[:len(line)-len(text)]
	}
	return line[:len(line)-len(text)+len(mark)+1]
}
