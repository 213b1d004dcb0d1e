package report

import (
	"errors"
	"fmt"
	"strings"
)

// measured is whose sizes stand in a page.
const measured = "graphd"

// ErrNoMarks says that a page has no place for a text.
var ErrNoMarks = errors.New("the page has no lines <!-- begin: NAME --> and <!-- end: NAME -->")

// Insert replaces the text between the marks of a page by the tables of a result.
// The error is ErrNoMarks.
func Insert(page string, r Result) (string, error) {
	return Between(page, "bench", r.About.Line()+"\n\n"+Table(r.Lines)+"\n"+Sizing(r.Figures, measured))
}

// Between replaces what stands between the marks of a name by a text. The error wraps
// ErrNoMarks.
func Between(page, name, text string) (string, error) {
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("%w, NAME is %s", ErrNoMarks, name)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}
