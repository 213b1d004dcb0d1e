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
	if put.ValidateOnly {
		return r.validate(ctx, file)
	}
	g, err := r.keep(ctx, file)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	return r.entry(g), nil
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

func (r *Registry) validate(ctx context.Context, file graphfile.File) (runtime.GraphEntry, error) {
	g, _, err := r.prepare(ctx, file)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	return r.entry(g), nil
}

// keep stores a graph and makes it visible, in this order.
func (r *Registry) keep(ctx context.Context, file graphfile.File) (*graph.Graph, error) {
	g, known, err := r.prepare(ctx, file)
	if err != nil || known {
		return g, err
	}
	if err := r.room(g.Name); err != nil {
		return nil, err
	}
	present, err := r.present(ctx)
	if err != nil {
		return nil, err
	}
	v := &entry{identity: identity{g.Name, g.Version}, created: present}
	inside := insideOf(g.Spec)
	v.inside.Store(&inside)
	text := source(g)
	if r.store == nil {
		v.source = text
		return r.publish(v, g, len(text))
	}
	err = r.store.PutGraph(ctx, checkpoint.GraphRecord{Name: g.Name, Version: g.Version, Source: text, Created: present})
	if errors.Is(err, checkpoint.ErrGraphExists) {
		return r.keepTheirs(ctx, file, g)
	}
	if err != nil {
		return nil, storeError(err)
	}
	return r.publish(v, g, len(text))
}

// publish makes a version visible as the newest of its name. One that has
// become known meanwhile stays what it is.
func (r *Registry) publish(v *entry, g *graph.Graph, bytes int) (*graph.Graph, error) {
	r.mu.Lock()
	all := *r.shelf.Load()
	if there := all.find(v.identity); there != nil {
		r.mu.Unlock()
		return r.agree(there, g)
	}
	r.puts++
	v.order = r.puts
	r.cache.put(v, g, g.Footprint(bytes))
	r.shelf.Store(all.with(v))
	r.mu.Unlock()
	return g, nil
}

// agree returns a version that is there, if it is the same as another graph.
func (r *Registry) agree(there *entry, g *graph.Graph) (*graph.Graph, error) {
	theirs, err := r.load(there)
	if err != nil {
		return nil, err
	}
	if !same(theirs.Spec, g.Spec) {
		return nil, exists(g)
	}
	return theirs, nil
}

// room refuses a version beyond the limits. Servers that put at the same time
// may together exceed them by a few.
func (r *Registry) room(name string) error {
	all := *r.shelf.Load()
	switch {
	case all[name] == nil && len(all) >= r.limits.Graphs:
		return tooMany("graphs", "max-graphs", r.limits.Graphs)
	case all.count() >= r.limits.Versions:
		return tooMany("versions of graphs", "max-graph-versions", r.limits.Versions)
	}
	return nil
}

func tooMany(what, limit string, most int) error {
	return runtime.Errorf(runtime.ReasonTooManyGraphs,
		"there are %d %s, which is the limit (%s); delete what is not used any more", most, what, limit).
		Beyond(limit, int64(most), 0)
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

// keepTheirs settles that another server has stored the version before, or
// that it was deleted.
func (r *Registry) keepTheirs(ctx context.Context, file graphfile.File, g *graph.Graph) (*graph.Graph, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	theirs, known, err := r.prepare(ctx, file)
	if err != nil {
		return nil, err
	}
	if r.shelf.Load().find(identity{g.Name, g.Version}) == nil {
		return nil, deleted(g)
	}
	if !known {
		return nil, exists(g)
	}
	return theirs, nil
}

// prepare pins and compiles a graph. When its version is known with the same
// content, that one is returned.
func (r *Registry) prepare(ctx context.Context, file graphfile.File) (g *graph.Graph, known bool, err error) {
	before, err := r.known(file.Spec.Name, file.Spec.Version)
	if err != nil {
		return nil, false, err
	}
	if before != nil {
		file.Spec = pin(file.Spec, likewise(before.Spec))
	} else {
		file.Spec = pin(file.Spec, r.newest)
	}
	if g, err = r.compile(ctx, file); err != nil {
		return nil, false, err
	}
	if before == nil {
		if before, err = r.known(g.Name, g.Version); before == nil {
			return g, false, err
		}
	}
	if !same(before.Spec, g.Spec) {
		return nil, false, exists(g)
	}
	return before, true, nil
}

// compile checks a graph that is put, and compiles it.
func (r *Registry) compile(ctx context.Context, file graphfile.File) (*graph.Graph, error) {
	inside, err := r.inside(file.Spec, nil)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // of two that are ready select takes any
		return nil, context.Cause(ctx)
	}
	select {
	case r.compiling <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-r.compiling }()
	env := r.env
	env.Lookup = inside.lookup
	return compileFile(file, env)
}

// known finds a version, nil = there is none that compiles here.
func (r *Registry) known(name, version string) (*graph.Graph, error) {
	v := r.shelf.Load().find(identity{name, version})
	if v == nil {
		return nil, nil
	}
	g, err := r.load(v)
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
		return nil, nil
	}
	return g, err
}

// same compares content; the order of channels and nodes does not count.
func same(a, b *graph.Spec) bool { return graph.Digest(a) == graph.Digest(b) }

// pins says which version a node's subgraph gets when it names none, "" = none.
type pins func(node *graph.NodeSpec) string

func (r *Registry) newest(n *graph.NodeSpec) string {
	g, err := r.Graph(n.Graph.Name, "")
	if err != nil {
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

func deleted(g *graph.Graph) error {
	return runtime.Errorf(runtime.ReasonGraphExists,
		"graph %q version %q was deleted and had other content, which threads may still wait for; give this one a new version",
		g.Name, g.Version).With("graph", g.Name).With("version", g.Version)
}

func exists(g *graph.Graph) error {
	return runtime.Errorf(runtime.ReasonGraphExists,
		"graph %q version %q exists with other content; a version never changes, so give this one a new version", g.Name, g.Version).
		With("graph", g.Name).With("version", g.Version)
}
