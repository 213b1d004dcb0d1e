package access

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a policy file.
type Problem struct {
	Line   int    // from 1; 0 for the file as a whole
	Field  string // like "bindings[0].roles[1]"; empty for the file as a whole
	Reason string // what is wrong
	Want   string // what would be right
}

// String tells the problem in a line.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Reason + "; want " + p.Want
}

// FileError lists what is wrong with a policy file: the first 20 problems in the
// order of the file.
type FileError struct {
	Path     string
	Problems []Problem
}

// Error tells all problems, each after the path.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = e.Path + ": " + p.String()
	}
	return strings.Join(lines, "\n")
}
