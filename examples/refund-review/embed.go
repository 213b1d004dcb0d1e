// Package refundreview carries the graph file of the refund review, so that
// the demo runs wherever the binary is.
package refundreview

import _ "embed"

// Document is the text of graph.yaml.
//
//go:embed graph.yaml
var Document string

// File is the name of the graph file.
const File = "graph.yaml"
