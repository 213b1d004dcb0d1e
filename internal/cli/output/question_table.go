package output

import (
	"strings"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// PrintQuestionTable prints questions as a table with a line each. On a terminal of so many
// columns it fits; 0 = no terminal, where nothing is cut or left out.
func (p *Printer) PrintQuestionTable(all []*graphdv1.Interrupt, now time.Time, columns int) {
	list := newQuestionColumns(all, now, columns == 0)
	if columns > 0 {
		list = fitColumns(list, columns)
	}
	for row := range len(all) + 1 {
		p.printRow(list, row)
	}
}

// tableColumn is one column of a table: its cells, the head first.
type tableColumn struct {
	cells []tableCell
	width int // of the widest cell
	// rank says which column a narrow terminal leaves out: the highest first, 0 = none.
	rank int
	// isFlexible is set for a column that is cut to fit.
	isFlexible bool
}

// tableCell is a text in a colour, "" = none.
type tableCell struct {
	text  SafeText
	color string
}

// Columns that a narrow terminal has, from the most important on.
const (
	rankPriority = iota + 1
	rankDue
	rankWho
	rankVotes
	rankID
	rankState
)

// newQuestionColumns makes the columns of questions. A column that says nothing is left out
// unless all are wanted.
func newQuestionColumns(all []*graphdv1.Interrupt, now time.Time, wantsAll bool) []tableColumn {
	var list []tableColumn
	for _, c := range []struct {
		head       SafeText
		rank       int
		isFlexible bool
		format     func(q *graphdv1.Interrupt) tableCell
	}{
		{"PRIORITY", rankPriority, false, priorityCell},
		{"TITLE", 0, true, titleCell},
		{"WHO", rankWho, false, func(q *graphdv1.Interrupt) tableCell { return whoCell(q, now, wantsAll) }},
		{"DUE", rankDue, false, func(q *graphdv1.Interrupt) tableCell { return dueCell(q, now) }},
		{"VOTES", rankVotes, false, func(q *graphdv1.Interrupt) tableCell { return plainCell(FormatVotes(q)) }},
		{"THREAD", 0, false, func(q *graphdv1.Interrupt) tableCell { return plainCell(q.GetThreadId()) }},
		{"ID", rankID, false, func(q *graphdv1.Interrupt) tableCell { return idCell(q, wantsAll) }},
	} {
		column := tableColumn{rank: c.rank, isFlexible: c.isFlexible}
		for _, q := range all {
			column.addCell(c.format(q))
		}
		if wantsAll || c.rank == 0 || column.width > len(nothing) {
			column.addHead(c.head)
			list = append(list, column)
		}
	}
	return appendStates(list, all)
}

// appendStates adds the states of questions if some are not open.
func appendStates(list []tableColumn, all []*graphdv1.Interrupt) []tableColumn {
	column, areOpen := tableColumn{rank: rankState}, true
	for _, q := range all {
		areOpen = areOpen && q.GetState() == graphdv1.InterruptState_INTERRUPT_STATE_OPEN
		column.addCell(plainCell(InterruptStateName(q)))
	}
	if areOpen {
		return list
	}
	column.addHead("STATE")
	return append(list, column)
}

func (c *tableColumn) addCell(cell tableCell) {
	c.cells = append(c.cells, cell)
	c.width = max(c.width, textWidth(cell.text))
}

func (c *tableColumn) addHead(head SafeText) {
	c.cells = append([]tableCell{{head, Dim}}, c.cells...)
	c.width = max(c.width, textWidth(head))
}

// gapWidth is the number of columns between two cells.
const gapWidth = 2

// Columns that a title has at least: before others are left out, and at the very least. And
// those that the people of a question have at least.
const (
	goodTitleWidth  = 24
	leastTitleWidth = 10
	leastWhoWidth   = 14
)

// fitColumns leaves out columns until a title is readable, and cuts what is still too wide.
func fitColumns(list []tableColumn, most int) []tableColumn {
	whole := 0 // the width of the people before they are narrowed
	for i := range list {
		if c := &list[i]; c.rank == rankWho {
			whole, c.width = c.width, min(c.width, leastWhoWidth)
		}
	}
	for spareColumns(list, most) < min(goodTitleWidth, flexibleWidth(list)) {
		last := findLastRank(list)
		if last < 0 {
			break
		}
		list = append(list[:last:last], list[last+1:]...)
	}
	title := flexibleWidth(list)
	extra := max(spareColumns(list, most)-min(goodTitleWidth, title), 0)
	for i := range list {
		if c := &list[i]; c.rank == rankWho { // half of what is left, or what the title does not use
			c.width = min(whole, c.width+max(extra/2, extra-max(title-goodTitleWidth, 0)))
		}
	}
	cutToFit(list, most)
	return list
}

// findLastRank finds the column that a narrow terminal leaves out first, -1 for none.
func findLastRank(list []tableColumn) int {
	last := -1
	for i := range list {
		if list[i].rank > 0 && (last < 0 || list[i].rank > list[last].rank) {
			last = i
		}
	}
	return last
}

// cutToFit narrows the title to what is left, and where that is too little the name of the
// thread, too.
func cutToFit(list []tableColumn, most int) {
	title := max(spareColumns(list, most), leastTitleWidth)
	for i := range list {
		switch c := &list[i]; {
		case c.isFlexible:
			c.width = min(c.width, title)
		case c.rank == 0:
			c.width = min(c.width, max(most-title-gapWidth, leastTitleWidth))
		}
	}
}

// spareColumns returns how many columns are left for the flexible column.
func spareColumns(list []tableColumn, most int) int {
	for i := range list {
		if !list[i].isFlexible {
			most -= list[i].width + gapWidth
		}
	}
	return most
}

func flexibleWidth(list []tableColumn) int {
	for i := range list {
		if list[i].isFlexible {
			return list[i].width
		}
	}
	return 0
}

// printRow prints a line of a table. The last column is not padded.
func (p *Printer) printRow(list []tableColumn, row int) {
	var line SafeText
	for i := range list {
		cell := list[i].cells[row]
		text := cutColumns(cell.text, list[i].width)
		pad := list[i].width - textWidth(text) + gapWidth
		if i == len(list)-1 {
			pad = 0
		}
		if cell.color != "" {
			text, pad = p.colorizeSafe(cell.color, text), max(pad, 0)
		}
		line += text + SafeText(strings.Repeat(" ", pad))
	}
	p.PrintLine("%s", line)
}
