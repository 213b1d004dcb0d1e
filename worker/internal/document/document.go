// Package document reads graph files for a worker: what the server gets, and which functions they
// name.
package document

import (
	"bytes"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// Document is a graph file.
type Document struct {
	Name string
	Spec *graphdv1.GraphSpec
	// HasSingleValue says that the state is one value.
	HasSingleValue bool
	// Nodes, Routers and Reducers are the names of functions that workers have.
	Nodes, Routers, Reducers []string
}

// rootChannel is the channel of a state that is one value.
const rootChannel = "__root__"

// Parse reads a graph file in YAML or JSON. The error lists all problems.
func Parse(text []byte) (*Document, error) {
	name := "graph.yaml"
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		name = "graph.json"
	}
	spec, _, err := graphfile.Parse(name, text)
	if err != nil {
		return nil, err
	}
	d := &Document{Name: spec.Name, Spec: wire.GraphSpecToProto(spec)}
	d.listFunctions(spec)
	return d, nil
}

func (d *Document) listFunctions(spec *graph.Spec) {
	for i := range spec.Nodes {
		if remote := spec.Nodes[i].Remote; remote != nil && remote.Endpoint == "" {
			d.Nodes = append(d.Nodes, spec.Nodes[i].Name)
		}
	}
	for i := range spec.Branches {
		if spec.Branches[i].InWorker {
			d.Routers = append(d.Routers, spec.Branches[i].Router)
		}
	}
	for i := range spec.Channels {
		d.HasSingleValue = d.HasSingleValue || spec.Channels[i].Name == rootChannel
		if spec.Channels[i].Function != "" {
			d.Reducers = append(d.Reducers, spec.Channels[i].Function)
		}
	}
}
