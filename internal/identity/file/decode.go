// Package file reads the files that say who may call: strictly, with the line of
// every problem, and anew whenever they change. It also replaces such a file as a
// whole.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBytes bounds a file.
const MaxBytes = 16 << 20

// Problem is a wrong value.
type Problem struct {
	// Path leads to the value: keys of mappings (string) and indexes of lists (int),
	// from the top.
	Path []any
	Is   string // what is wrong with the value, without the value where it may be secret
	Want string // what would be right
}

// PrefixProblems returns the problems with a path before theirs.
func PrefixProblems(problems []Problem, path ...any) []Problem {
	var all []Problem
	for _, p := range problems {
		p.Path = append(append([]any{}, path...), p.Path...)
		all = append(all, p)
	}
	return all
}

// Error is one problem of a file.
type Error struct {
	File  string
	Line  int    // from 1; 0 = the file as a whole
	Field string // like keys[2].hash; "" = not a field
	Is    string
	Want  string
}

// Error names the file, the line, the field, the problem and what would be right.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + " ")
	}
	b.WriteString(e.Is)
	if e.Want != "" {
		b.WriteString(": want " + e.Want)
	}
	return b.String()
}

// Document is what a file decodes into. Its fields have yaml tags.
type Document interface {
	// Problems lists the wrong values.
	Problems() []Problem
}

// Decode reads YAML into a document. It refuses unknown and repeated fields, values
// of the wrong type, a second document, and whatever the document calls a problem.
// The error joins an *Error for each. It shows no value. Empty text leaves the
// document as it is.
func Decode(name string, text []byte, into Document) error {
	if len(text) > MaxBytes {
		return &Error{File: name, Is: fmt.Sprintf("has %d bytes", len(text)), Want: fmt.Sprintf("at most %d", MaxBytes)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return describeErrors(name, text, into, err)
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		return &Error{File: name, Line: second.Line, Is: "a second document begins", Want: "one document"}
	} else if !errors.Is(err, io.EOF) {
		return describeErrors(name, text, into, err)
	}
	var all []error
	var root yaml.Node
	for _, p := range into.Problems() {
		if root.IsZero() {
			if err := yaml.Unmarshal(text, &root); err != nil {
				return describeErrors(name, text, into, err)
			}
		}
		all = append(all, &Error{File: name, Line: findLine(&root, p.Path), Field: formatPath(p.Path), Is: p.Is, Want: p.Want})
	}
	return errors.Join(all...)
}

// Encode writes a document as YAML.
func Encode(document Document) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}

// findLine returns the line of the value at a path, or of the innermost value around
// it that exists.
func findLine(root *yaml.Node, path []any) int {
	n, line := root, 1
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for _, step := range path {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		var next *yaml.Node
		switch step := step.(type) {
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					line, next = n.Content[i].Line, n.Content[i+1]
				}
			}
		case int:
			if n.Kind == yaml.SequenceNode && step < len(n.Content) {
				next = n.Content[step]
				line = next.Line
			}
		}
		if next == nil {
			return line
		}
		n = next
	}
	return line
}

func formatPath(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		}
	}
	return b.String()
}
