package graphfile

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// isGraphDocument reports whether a file of a folder is a graph, valid or not: it is
// called graph.yaml, graph.yml or graph.json, or has a field graph or nodes at the
// top. Other files may lie beside it.
func isGraphDocument(path string, data []byte) bool {
	base := strings.ToLower(filepath.Base(path))
	if strings.TrimSuffix(base, filepath.Ext(base)) == "graph" {
		return true
	}
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document); err != nil {
		return looksLikeGraph(data)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return false
	}
	root := document.Content[0].Content
	for i := 0; i < len(root); i += 2 {
		if root[i].Value == "graph" || root[i].Value == "nodes" {
			return true
		}
	}
	return false
}

// looksLikeGraph does the work of isGraphDocument for text that can't be read.
func looksLikeGraph(data []byte) bool {
	return regexp.MustCompile(`(?m)^(?:\s*\{)?\s{0,2}["']?(?:graph|nodes)["']?\s*:`).Match(data)
}
