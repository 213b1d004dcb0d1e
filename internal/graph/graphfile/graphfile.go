// Package graphfile reads graphs that people write as YAML or JSON files.
//
// Reading is strict: an unknown field, a wrong type or a repeated key is a
// problem with its line and a suggestion, and all problems of a file are
// reported at once. The format is described in docs and shown in examples.
package graphfile

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
)

// Positions maps the path of every field of a file to its line, from 1.
type Positions map[string]int

// Line returns the line of a path, of the nearest field around it if the path
// is not in the file, and 0 if nothing is known.
func (p Positions) Line(path string) int {
	for {
		if line, ok := p[path]; ok {
			return line
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return p[""]
		}
		path = path[:i]
	}
}

// Parse reads a graph. A name that ends in .json makes the data JSON, any other
// YAML. It returns all problems in a *graph.BuildError. Unless the text cannot be
// read at all, it also returns the Spec without the wrong fields, so that the
// rest can be checked as well.
func Parse(name string, data []byte) (*graph.Spec, Positions, error) {
	read := readYAML
	if strings.EqualFold(filepath.Ext(name), ".json") {
		read = readJSON
	}
	root, problem := read(data)
	if problem != nil {
		return nil, Positions{}, &graph.BuildError{Problems: []graph.Problem{*problem}}
	}
	r := &specReader{reader: reader{lines: Positions{"": root.Line}}}
	if root.Kind != yaml.MappingNode {
		r.addWrongType(root, "", "a mapping with the fields of a graph")
		return nil, r.lines, &graph.BuildError{Problems: r.problems}
	}
	spec := r.readSpec(root)
	if len(r.problems) > 0 {
		return spec, r.lines, &graph.BuildError{Graph: spec.Name, Problems: r.problems}
	}
	return spec, r.lines, nil
}

func readYAML(data []byte) (*yaml.Node, *graph.Problem) {
	root, problem := decodeYAML(data)
	if problem == nil {
		return root, nil
	}
	// "- [a, b] -> c" is the natural way to write a join, but not YAML.
	if fixed := quoteJoins(data); !bytes.Equal(fixed, data) {
		if again, second := decodeYAML(fixed); second == nil {
			return again, nil
		}
	}
	if line, ok := findTabIndent(data); ok && (problem.Line == 0 || line <= problem.Line+1) {
		return nil, syntaxProblem(line, "not YAML: the line is indented with a tab; indent with spaces")
	}
	return nil, problem
}

// findTabIndent finds the first line that is indented with a tab.
func findTabIndent(data []byte) (int, bool) {
	for i, line := range bytes.Split(data, []byte{'\n'}) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if bytes.IndexByte(indent, '\t') >= 0 && len(indent) < len(bytes.TrimRight(line, "\r")) {
			return i + 1, true
		}
	}
	return 0, false
}

func decodeYAML(data []byte) (*yaml.Node, *graph.Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, syntaxProblem(1, "the file is empty")
		}
		return nil, yamlProblem(err)
	}
	if len(document.Content) != 1 {
		return nil, syntaxProblem(1, "the file is empty")
	}
	var more yaml.Node
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, syntaxProblem(more.Line, "the file holds several documents; a file holds one graph")
	case !errors.Is(err, io.EOF):
		return nil, yamlProblem(err)
	}
	return document.Content[0], nil
}

func syntaxProblem(line int, message string) *graph.Problem {
	return &graph.Problem{Reason: graph.ReasonInvalidSyntax, Message: message, Line: line}
}

// yamlProblem takes the line out of the library's message.
func yamlProblem(err error) *graph.Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	place := regexp.MustCompile(`^(?:line (\d+): )?(?s)(.*)$`).FindStringSubmatch(message)
	line, _ := strconv.Atoi(place[1]) // "" = no line, 0
	return syntaxProblem(line, "not YAML: "+place[2])
}

func quoteJoins(data []byte) []byte {
	join := regexp.MustCompile(`(?m)^(\s*-\s+)(\[[^\]"'#]*\]\s*->[^"'#\r\n]*?)(\s*(?:#.*)?)$`)
	return join.ReplaceAll(data, []byte(`$1'$2'$3`))
}
