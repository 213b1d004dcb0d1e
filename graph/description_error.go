package graph

import (
	"fmt"
	"strings"
)

// DescriptionError lists all that is wrong with a graph.
type DescriptionError struct {
	Graph    string
	Problems []Problem
}

// Problem is one thing that is wrong with a graph.
type Problem struct {
	// Field is its path, as in a graph file: "nodes.pay.retry", "edges[2]". "" = the whole.
	Field string
	// Description says what is wrong, and what would be right.
	Description string
}

// Error lists the problems, a line for each.
func (e *DescriptionError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the graph %q is described wrongly:", e.Graph)
	for _, p := range e.Problems {
		text.WriteString("\n  ")
		if p.Field != "" {
			text.WriteString(p.Field + ": ")
		}
		text.WriteString(p.Description)
	}
	return text.String()
}
