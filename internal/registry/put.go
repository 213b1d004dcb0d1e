package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// PutGraph checks a graph and, unless it is only to be checked, keeps it under
// its version. Subgraphs that name no version are pinned to the newest of now.
// The same content again is no error. What is wrong with the graph comes as a
// *graph.BuildError, everything else as a *runtime.Error.
func (r *Registry) PutGraph(ctx context.Context, put runtime.GraphPut) (runtime.GraphEntry, error) {
	file, err := fileOf(put)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if put.ValidateOnly {
		return r.validate(file)
	}
	g, err := r.keep(ctx, file)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	return (*r.shelf.Load())[g.Name].entry(g.Version), nil
}

func fileOf(put runtime.GraphPut) (graphfile.File, error) {
	if put.Spec != nil {
		return graphfile.File{Spec: put.Spec}, nil
	}
	name := put.DocumentName
	if name == "" && strings.HasPrefix(strings.TrimSpace(put.Document), "{") {
		name = "graph.json"
	}
	return parse(name, put.Document)
}

func (r *Registry) validate(file graphfile.File) (runtime.GraphEntry, error) {
	g, known, err := r.prepare(file)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	v := (*r.shelf.Load())[g.Name]
	switch {
	case known:
		return v.entry(g.Version), nil
	case v != nil:
		return runtime.GraphEntry{Graph: g, Versions: v.entry("").Versions}, nil
	}
	return runtime.GraphEntry{Graph: g}, nil
}

// keep stores a graph and makes it visible, in this order. mu is held.
func (r *Registry) keep(ctx context.Context, file graphfile.File) (*graph.Graph, error) {
	g, known, err := r.prepare(file)
	if err != nil || known {
		return g, err
	}
	present, err := r.present(ctx)
	if err != nil {
		return nil, err
	}
	e := entry{graph: g, created: present}
	if r.store != nil {
		record := checkpoint.GraphRecord{
			Name: g.Name, Version: g.Version, Source: source(g), Created: e.created,
		}
		err := r.store.PutGraph(ctx, record)
		if errors.Is(err, checkpoint.ErrGraphExists) {
			return r.keepTheirs(ctx, file, g)
		}
		if err != nil {
			return nil, storeError(err)
		}
	}
	delete(r.broken, identity{g.Name, g.Version})
	r.publish(e)
	return g, nil
}

// present is the time by the clock of whoever shares the store.
func (r *Registry) present(ctx context.Context) (time.Time, error) {
	clock, ok := r.store.(checkpoint.Clock)
	if !ok {
		return r.now(), nil
	}
	now, err := clock.Present(ctx)
	if err != nil {
		return now, storeError(err)
	}
	return now, nil
}

// keepTheirs settles that somebody else has stored the version before.
func (r *Registry) keepTheirs(ctx context.Context, file graphfile.File, g *graph.Graph) (*graph.Graph, error) {
	records, err := r.store.GraphRecords(ctx)
	if err != nil {
		return nil, storeError(err)
	}
	for i := range records {
		if records[i].Name == g.Name && records[i].Version == g.Version {
			r.takeUp(&records[i])
		}
	}
	theirs, known, err := r.prepare(file)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, exists(g)
	}
	return theirs, nil
}

// prepare pins and compiles a graph. When its version is known with the same
// content, that one is returned.
func (r *Registry) prepare(file graphfile.File) (g *graph.Graph, known bool, err error) {
	before, again := r.known(file.Spec)
	if again {
		file.Spec = pin(file.Spec, likewise(before.Spec))
	} else {
		file.Spec = pin(file.Spec, r.newest)
	}
	if g, err = compileFile(file, r.env); err != nil {
		return nil, false, err
	}
	if !again {
		if before, again = r.Graph(g.Name, g.Version); !again {
			return g, false, nil
		}
	}
	if !same(before.Spec, g.Spec) {
		return nil, false, exists(g)
	}
	return before, true, nil
}

// known finds the version that a Spec names.
func (r *Registry) known(s *graph.Spec) (*graph.Graph, bool) {
	if s.Version == "" {
		return nil, false
	}
	return r.Graph(s.Name, s.Version)
}

// same compares content; the order of channels and nodes does not count.
func same(a, b *graph.Spec) bool { return graph.Digest(a) == graph.Digest(b) }

// pins says which version a node's subgraph gets when it names none, "" = none.
type pins func(node *graph.NodeSpec) string

func (r *Registry) newest(n *graph.NodeSpec) string {
	g, ok := r.Graph(n.Graph.Name, "")
	if !ok {
		return ""
	}
	return g.Version
}

// likewise pins as another version of the graph is pinned.
func likewise(s *graph.Spec) pins {
	return func(n *graph.NodeSpec) string {
		for i := range s.Nodes {
			if o := &s.Nodes[i]; o.Name == n.Name && o.Graph != nil && o.Graph.Name == n.Graph.Name {
				return o.Graph.Version
			}
		}
		return ""
	}
}

// pin copies a Spec so that its subgraphs name a version: what a thread was
// started with must be what it goes on with. A graph that contains itself is
// left alone for the compiler to refuse.
func pin(s *graph.Spec, version pins) *graph.Spec {
	open := func(n *graph.NodeSpec) bool {
		return n.Graph != nil && n.Graph.Version == "" && n.Graph.Name != s.Name
	}
	if !slices.ContainsFunc(s.Nodes, func(n graph.NodeSpec) bool { return open(&n) }) {
		return s
	}
	pinned := *s
	pinned.Nodes = slices.Clone(s.Nodes)
	for i := range pinned.Nodes {
		n := &pinned.Nodes[i]
		if !open(n) {
			continue
		}
		sub := *n.Graph
		sub.Version = version(n)
		n.Graph = &sub
	}
	return &pinned
}

// source is the form in which a graph is stored, its version included.
func source(g *graph.Graph) string {
	named := *g.Spec
	named.Version = g.Version
	return graph.EncodeSpec(&named)
}

func exists(g *graph.Graph) error {
	return runtime.Errorf(runtime.ReasonGraphExists,
		"graph %q version %q exists with other content; a version never changes, so give this one a new version", g.Name, g.Version).
		With("graph", g.Name).With("version", g.Version)
}
