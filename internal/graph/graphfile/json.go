package graphfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
)

// readJSON reads JSON into the same tree as YAML, numbers as they are spelled.
func readJSON(data []byte) (*yaml.Node, *graph.Problem) {
	// A file may repeat keys; the reader of the tree reports that with a line.
	err := payload.Validate("["+string(data)+"]", payload.Limits{MaxDepth: maxDepth, RepeatedKeys: payload.AllowRepeatedKeys})
	if syntax := (*payload.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, syntaxProblem(lineAt(data, syntax.Offset-1), "not JSON: "+syntax.Problem)
	}
	if err != nil {
		return nil, syntaxProblem(1, err.Error())
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	j := jsonReader{decoder: decoder, data: data}
	node, err := j.readValue()
	if err != nil {
		return nil, syntaxProblem(1, "not JSON: "+err.Error())
	}
	if decoder.More() {
		return nil, syntaxProblem(j.currentLine(), "the file holds several values; a file holds one graph")
	}
	return node, nil
}

func lineAt(data []byte, offset int) int {
	offset = max(0, min(offset, len(data)))
	return 1 + bytes.Count(data[:offset], []byte{'\n'})
}

type jsonReader struct {
	decoder      *json.Decoder
	data         []byte
	countedBytes int // bytes
	countedLines int // line ends in them
}

// currentLine returns the line of the end of the last token; tokens span no lines.
func (j *jsonReader) currentLine() int {
	at := int(j.decoder.InputOffset())
	j.countedLines += bytes.Count(j.data[j.countedBytes:at], []byte{'\n'})
	j.countedBytes = at
	return j.countedLines + 1
}

func (j *jsonReader) readValue() (*yaml.Node, error) {
	token, err := j.decoder.Token()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: j.currentLine()}
	switch t := token.(type) {
	case json.Delim:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		if t == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		for j.decoder.More() {
			child, err := j.readValue()
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = j.decoder.Token()
		return node, err
	case string:
		node.Tag, node.Value, node.Style = "!!str", t, yaml.DoubleQuotedStyle
	case json.Number:
		node.Tag, node.Value = "!!float", t.String()
	case bool:
		node.Tag, node.Value = "!!bool", fmt.Sprint(t)
	case nil:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, nil
}
