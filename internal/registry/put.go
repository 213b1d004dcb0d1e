package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// PutGraph checks a graph and stores it under its version, unless the request asks
// only for a check. It pins subgraphs without a version to the newest version. The
// same content again is no error. The error is a *graph.BuildError for a graph with
// problems, and else a *runtime.Error.
func (r *Registry) PutGraph(ctx context.Context, put runtime.PutGraphRequest) (runtime.GraphEntry, error) {
	owner := cmp.Or(put.Tenant, tenant.Default)
	if err := tenant.CheckName(owner); err != nil {
		return runtime.GraphEntry{}, runtime.Errorf(runtime.ReasonInvalidField, "%w", err).With("field", "tenant")
	}
	file, err := parsePut(put)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	if put.ValidateOnly {
		return r.validateGraph(ctx, owner, file)
	}
	g, err := r.storeGraph(ctx, owner, file, put.Approve)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	return r.toEntry(g), nil
}

// ParseGraph reads the graph of a request without checking it. The error is a
// *graph.BuildError for a document that can't be read.
func (*Registry) ParseGraph(put runtime.PutGraphRequest) (*graph.Spec, error) {
	file, err := parsePut(put)
	return file.Spec, err
}

func parsePut(put runtime.PutGraphRequest) (graphfile.File, error) {
	if put.Spec != nil {
		return graphfile.File{Spec: put.Spec}, nil
	}
	name := put.DocumentName
	if name == "" && strings.HasPrefix(strings.TrimSpace(put.Document), "{") {
		name = "graph.json"
	}
	return parseFile(name, put.Document)
}

func (r *Registry) validateGraph(ctx context.Context, owner string, file graphfile.File) (runtime.GraphEntry, error) {
	g, _, err := r.prepareGraph(ctx, owner, file)
	if err != nil {
		return runtime.GraphEntry{}, err
	}
	return r.toEntry(g), nil
}

// approval decides whether a version may be stored, nil = each may.
type approval func(ctx context.Context, next *graph.Graph) error

// storeGraph stores a graph of a tenant. An approval is repeated until it has compared with
// the versions beside which the graph is stored.
func (r *Registry) storeGraph(ctx context.Context, owner string, file graphfile.File, approve approval) (*graph.Graph, error) {
	g, known, err := r.prepareGraph(ctx, owner, file)
	if err != nil || known {
		return g, err
	}
	if approve == nil {
		return r.storeVersion(ctx, owner, file, g, checkpoint.GraphCondition{})
	}
	for {
		versions, err := r.readVersions(ctx, g.Name)
		if err != nil {
			return nil, err
		}
		if g, known, err = r.prepareGraph(ctx, owner, file); err != nil || known {
			return g, err
		}
		if err := approve(ctx, g); err != nil {
			return nil, err
		}
		stored, err := r.storeVersion(ctx, owner, file, g, checkpoint.ExpectVersions(versions...))
		if !errors.Is(err, checkpoint.ErrVersionsChanged) {
			return stored, err
		}
	}
}

// storeVersion stores a version of a graph and makes it visible, in this order. It returns
// checkpoint.ErrVersionsChanged when the condition does not hold.
func (r *Registry) storeVersion(
	ctx context.Context, owner string, file graphfile.File, g *graph.Graph, condition checkpoint.GraphCondition,
) (*graph.Graph, error) {
	if err := r.checkLimits(g.Name); err != nil {
		return nil, err
	}
	present, err := r.currentTime(ctx)
	if err != nil {
		return nil, err
	}
	v := &graphVersion{versionID: versionID{g.Name, g.Version}, created: present}
	inside := subgraphsOf(owner, g.Spec)
	v.subgraphs.Store(&inside)
	text := encodeSource(g)
	if r.store == nil {
		v.source = text
		return r.publishVersion(v, g, len(text), condition)
	}
	err = r.store.PutGraph(ctx, checkpoint.GraphRecord{Name: g.Name, Version: g.Version, Source: text, Created: present}, condition)
	switch {
	case errors.Is(err, checkpoint.ErrGraphExists):
		return r.resolveExisting(ctx, owner, file, g)
	case errors.Is(err, checkpoint.ErrVersionsChanged):
		return nil, err
	case err != nil:
		return nil, translateStoreError(err)
	}
	return r.publishVersion(v, g, len(text), checkpoint.GraphCondition{})
}

// publishVersion makes a version visible as the newest of its name. A version that
// has become known meanwhile is not replaced. It returns checkpoint.ErrVersionsChanged when
// the condition does not hold.
func (r *Registry) publishVersion(v *graphVersion, g *graph.Graph, bytes int, condition checkpoint.GraphCondition) (*graph.Graph, error) {
	r.mu.Lock()
	all := *r.catalog.Load()
	if there := all.findVersion(v.versionID); there != nil {
		r.mu.Unlock()
		return r.requireSameContent(there, g)
	}
	if err := condition.CheckVersions(all.findGraph(v.name).versionNames()); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	r.putCount++
	v.putNumber = r.putCount
	r.cache.putCompiled(v, g, g.Footprint(bytes))
	r.catalog.Store(all.withVersion(v))
	r.mu.Unlock()
	return g, nil
}

// requireSameContent returns an existing version if it has the same content as
// another graph, and an error if not.
func (r *Registry) requireSameContent(there *graphVersion, g *graph.Graph) (*graph.Graph, error) {
	theirs, err := r.loadGraph(there)
	if err != nil {
		return nil, err
	}
	if !hasSameContent(theirs.Spec, g.Spec) {
		return nil, existsError(g)
	}
	return theirs, nil
}

// checkLimits returns an error for a version beyond the limits. Servers that put at
// the same time may together exceed them by a few.
func (r *Registry) checkLimits(name string) error {
	all := *r.catalog.Load()
	graphs, versions := all.countAll()
	isNew := all.findGraph(name) == nil
	owner, _ := tenant.Split(name)
	most := runtime.FindTenantLimit(r.tenants, owner, runtime.HoldingGraphs)
	switch {
	case isNew && most >= 0 && int64(len(all.namesBeside(name))) >= most:
		return runtime.TenantLimitError(owner, runtime.HoldingGraphs, most)
	case isNew && graphs >= r.limits.Graphs:
		return tooManyError("graphs", "max-graphs", r.limits.Graphs)
	case versions >= r.limits.Versions:
		return tooManyError("versions of graphs", "max-graph-versions", r.limits.Versions)
	}
	return nil
}

func tooManyError(what, limit string, most int) error {
	return runtime.Errorf(runtime.ReasonTooManyGraphs,
		"there are %d %s, which is the limit (%s); delete what is not used any more", most, what, limit).
		WithLimit(limit, int64(most), 0)
}

// currentTime returns the time by the clock that all servers of the store share.
func (r *Registry) currentTime(ctx context.Context) (time.Time, error) {
	clock, ok := r.store.(checkpoint.Clock)
	if !ok {
		return r.now(), nil
	}
	now, err := clock.Now(ctx)
	if err != nil {
		return now, translateStoreError(err)
	}
	return now, nil
}

// resolveExisting handles a version that another server has stored before, or that
// was deleted.
func (r *Registry) resolveExisting(
	ctx context.Context, owner string, file graphfile.File, g *graph.Graph,
) (*graph.Graph, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	theirs, known, err := r.prepareGraph(ctx, owner, file)
	if err != nil {
		return nil, err
	}
	if r.catalog.Load().findVersion(versionID{g.Name, g.Version}) == nil {
		return nil, deletedError(g)
	}
	if !known {
		return nil, existsError(g)
	}
	return theirs, nil
}

// prepareGraph pins and compiles a graph. If its version is known with the same
// content, it returns the known graph.
func (r *Registry) prepareGraph(
	ctx context.Context, owner string, file graphfile.File,
) (g *graph.Graph, known bool, err error) {
	before, err := r.findCompiled(qualifyName(owner, file.Spec.Name), file.Spec.Version)
	if err != nil {
		return nil, false, err
	}
	if before != nil {
		file.Spec = pinSubgraphs(file.Spec, pinLike(before.Spec))
	} else {
		file.Spec = pinSubgraphs(file.Spec, r.pinNewest(owner))
	}
	if g, err = r.compileGraph(ctx, owner, file); err != nil {
		return nil, false, err
	}
	if before == nil {
		if before, err = r.findCompiled(g.Name, g.Version); before == nil {
			return g, false, err
		}
	}
	if !hasSameContent(before.Spec, g.Spec) {
		return nil, false, existsError(g)
	}
	return before, true, nil
}

// findCompiled returns a version, nil if there is none that compiles here.
func (r *Registry) findCompiled(name, version string) (*graph.Graph, error) {
	v := r.catalog.Load().findVersion(versionID{name, version})
	if v == nil {
		return nil, nil
	}
	g, err := r.loadGraph(v)
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
		return nil, nil
	}
	return g, err
}

// hasSameContent compares content; the order of channels and nodes does not count.
func hasSameContent(a, b *graph.Spec) bool { return graph.Digest(a) == graph.Digest(b) }

// versionPinner returns the version of a node's subgraph that names none, "" for
// none.
type versionPinner func(node *graph.NodeSpec) string

// pinNewest pins subgraphs to the newest versions of a tenant.
func (r *Registry) pinNewest(owner string) versionPinner {
	return func(n *graph.NodeSpec) string {
		g, err := r.Graph(qualifyName(owner, n.Graph.Name), "")
		if err != nil {
			return ""
		}
		return g.Version
	}
}

// pinLike pins subgraphs as in another version of the graph.
func pinLike(s *graph.Spec) versionPinner {
	return func(n *graph.NodeSpec) string {
		for i := range s.Nodes {
			if o := &s.Nodes[i]; o.Name == n.Name && o.Graph != nil && o.Graph.Name == n.Graph.Name {
				return o.Graph.Version
			}
		}
		return ""
	}
}

// qualifyName returns the name of a graph of a tenant as the catalog and the store have
// it, "" for a text that is no name: there is no such graph, and the compiler refuses it.
func qualifyName(owner, name string) string {
	qualified, _ := tenant.Qualify(owner, name)
	return qualified
}

// clientName returns the name of a graph as its tenant knows it, for errors.
func clientName(qualified string) string {
	_, name := tenant.Split(qualified)
	return name
}

// pinSubgraphs copies a Spec so that its subgraphs name a version, because a thread
// must continue with the versions it started with. It does not pin a graph that
// contains itself, which the compiler refuses.
func pinSubgraphs(s *graph.Spec, version versionPinner) *graph.Spec {
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

// encodeSource returns the stored form of a graph, its version included.
func encodeSource(g *graph.Graph) string {
	named := *g.Spec
	named.Version = g.Version
	return graph.EncodeSpec(&named)
}

func deletedError(g *graph.Graph) error {
	return runtime.Errorf(runtime.ReasonGraphExists,
		"graph %q version %q was deleted and had other content, which threads may still wait for; give this one a new version",
		clientName(g.Name), g.Version).With("graph", clientName(g.Name)).With("version", g.Version)
}

func existsError(g *graph.Graph) error {
	return runtime.Errorf(runtime.ReasonGraphExists,
		"graph %q version %q exists with other content; a version never changes, so give this one a new version",
		clientName(g.Name), g.Version).
		With("graph", clientName(g.Name)).With("version", g.Version)
}
