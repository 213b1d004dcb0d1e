package report

import (
	"errors"
	"fmt"
	"strings"
)

// The marks in a page between which the tables stand.
const (
	tableBegins = "<!-- begin: bench -->\n"
	tableEnds   = "<!-- end: bench -->\n"
)

// measured is whose sizes stand in a page.
const measured = "graphd"

// ErrNoMarks says that a page has no place for the table.
var ErrNoMarks = errors.New("the page has no lines " + strings.TrimSpace(tableBegins) + " and " + strings.TrimSpace(tableEnds))

// Insert replaces the text between the marks of a page by the tables of a result.
// The error is ErrNoMarks.
func Insert(page string, r Result) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		return "", ErrNoMarks
	}
	where := fmt.Sprintf("%s, %d × %s, graphd %s, redis %s; %s\n\n", r.About.Date, r.About.Cores, r.About.Machine,
		r.About.Commit, r.About.Versions["redis"], r.About.Settings)
	return before + tableBegins + "\n" + where + Table(r.Lines) + "\n" + Sizing(r.Figures, measured) + "\n" + tableEnds + after, nil
}
