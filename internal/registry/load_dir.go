package registry

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// LoadDir reads the graph files of a folder, stores new versions and makes each
// file's graph the newest of its name. A further call loads only changes: a changed
// file is a new version. It returns the graphs that have become the newest, and all
// *graphfile.FileErrors joined. A broken file keeps its earlier version.
func (r *Registry) LoadDir(ctx context.Context, dir string) ([]*graph.Graph, error) {
	files, others, readErr := graphfile.LoadDir(dir)
	for _, path := range others {
		r.log.Debug("this file is not a graph: it has neither graph nor nodes at the top", zap.String("file", path))
	}
	env := r.env
	env.Lookup = func(name, version string) (*graph.Graph, bool) {
		g, err := r.Graph(name, version)
		return g, err == nil
	}
	good, compileErr := graphfile.CompileAll(files, env)
	l := &dirLoader{registry: r, files: make(map[*graph.Spec]graphfile.File, len(files)), done: make(map[*graph.Spec]bool)}
	for _, f := range files {
		l.files[f.Spec] = f
	}
	for _, g := range good {
		l.loadGraph(ctx, g)
	}
	return l.changed, errors.Join(readErr, compileErr, errors.Join(l.failures...))
}

// dirLoader puts the graphs of a folder, each after the graphs that it contains.
type dirLoader struct {
	registry *Registry
	files    map[*graph.Spec]graphfile.File
	done     map[*graph.Spec]bool
	changed  []*graph.Graph
	failures []error
}

func (l *dirLoader) loadGraph(ctx context.Context, g *graph.Graph) {
	file, ours := l.files[g.Spec]
	if !ours || l.done[g.Spec] {
		return
	}
	l.done[g.Spec] = true
	for _, n := range g.Nodes {
		if n.Sub != nil {
			l.loadGraph(ctx, n.Sub)
		}
	}
	r := l.registry
	kept, err := r.storeGraph(ctx, tenant.Default, file, nil)
	if err != nil {
		l.failures = append(l.failures, &graphfile.FileError{Path: file.Path, Err: err})
		return
	}
	id := versionID{kept.Name, kept.Version}
	if !r.makeNewest(file.Path, id) {
		return
	}
	l.changed = append(l.changed, kept)
}

// makeNewest makes a version the newest of its name, unless it already did so for
// the same file.
func (r *Registry) makeNewest(path string, id versionID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versionByFile[path] == id {
		return false
	}
	r.versionByFile[path] = id
	if all := *r.catalog.Load(); all.findVersion(id) != nil {
		r.catalog.Store(all.withNewest(all.findVersion(id)))
	}
	return true
}
