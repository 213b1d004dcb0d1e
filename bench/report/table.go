package report

import (
	"strings"
	"unicode/utf8"
)

// Grid lays out rows as Markdown that also reads well as text. The first row
// is the head.
func Grid(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for number, row := range rows {
		for i, cell := range row {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+1))
		}
		b.WriteString("|\n")
		if number == 0 {
			for _, w := range widths {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}

// Table is the lines with their marks.
func Table(lines []Line) string {
	rows := [][]string{{"", "what", "against", "goal", "reached", "lowest – highest"}}
	for _, l := range lines {
		median, spread := l.found()
		rows = append(rows, []string{l.Mark(), l.Title, l.Against, l.goal(), median, spread})
	}
	return Grid(rows)
}
