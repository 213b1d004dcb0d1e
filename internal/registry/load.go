package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// storeTimeout bounds the reading of one graph.
const storeTimeout = 5 * time.Second

// load returns the compiled form of a version. The error is a *runtime.Error.
func (r *Registry) load(v *entry) (*graph.Graph, error) {
	return r.loadWithin(v, nil)
}

// loadWithin is load for a graph that others contain, the innermost last.
func (r *Registry) loadWithin(v *entry, around []identity) (*graph.Graph, error) {
	if g := r.cache.get(v); g != nil {
		return g, nil
	}
	now := r.shelf.Load()
	if f := v.broken.Load(); f != nil && f.shelf == now {
		return nil, f.err
	}
	g, err := r.make(v, around)
	if err == nil {
		v.broken.Store(nil)
		return g, nil
	}
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
		v.broken.Store(&failure{err, now})
		if !v.warned.Swap(true) {
			r.log.Warn("a stored graph can't be used in this server", zap.String("graph", v.name),
				zap.String("version", v.version), zap.Error(err))
		}
	}
	return nil, err
}

// make compiles a version, once for all who ask at the same time. Graphs in it
// are loaded first: nothing is waited for while others wait for this one.
func (r *Registry) make(v *entry, around []identity) (*graph.Graph, error) {
	if g := r.cache.restore(v); g != nil {
		return g, nil
	}
	made, err, _ := r.reads.Do(v.String(), func() (any, error) {
		ctx, cancel := r.patience()
		defer cancel()
		return r.read(ctx, v)
	})
	if err != nil {
		return nil, err
	}
	file, _ := made.(storedFile)
	inside, err := r.inside(file.Spec, append(slices.Clone(around), v.identity))
	if err != nil {
		return nil, err
	}
	made, err, _ = r.compiles.Do(v.String(), func() (any, error) {
		if g := r.cache.get(v); g != nil {
			return g, nil
		}
		return r.compileStored(v, file, inside)
	})
	g, _ := made.(*graph.Graph)
	return g, err
}

// storedFile is a stored graph that could be read.
type storedFile struct {
	graphfile.File

	bytes int
}

// read gets the source of a version and reads it.
func (r *Registry) read(ctx context.Context, v *entry) (storedFile, error) {
	source, err := r.source(ctx, v)
	if err != nil {
		return storedFile{}, err
	}
	file, err := parse(v.name+".json", source)
	if err != nil {
		return storedFile{}, unusable(v, err)
	}
	inside := insideOf(file.Spec)
	v.inside.Store(&inside)
	return storedFile{file, len(source)}, nil
}

func (r *Registry) source(ctx context.Context, v *entry) (string, error) {
	if v.source != "" {
		return v.source, nil
	}
	record, err := r.store.GraphRecord(ctx, v.name, v.version)
	if errors.Is(err, checkpoint.ErrGraphNotFound) {
		return "", runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q version %q was deleted", v.name, v.version).
			With("graph", v.name).With("version", v.version)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, context.Cause(ctx))
	}
	if err != nil {
		return "", storeError(err)
	}
	return record.Source, nil
}

// subgraphs are the graphs that a Spec names, compiled.
type subgraphs map[identity]*graph.Graph

func (s subgraphs) lookup(name, version string) (*graph.Graph, bool) {
	g, ok := s[identity{name, version}]
	return g, ok
}

// inside loads the graphs that a Spec with pinned versions contains. Those that
// can't be had are left out, for the compiler to name.
func (r *Registry) inside(s *graph.Spec, around []identity) (subgraphs, error) {
	subs := make(subgraphs)
	for i := range s.Nodes {
		sub := s.Nodes[i].Graph
		if sub == nil {
			continue
		}
		id := identity{sub.Name, sub.Version}
		v := r.shelf.Load().find(id)
		if v == nil || subs[id] != nil || slices.Contains(around, id) {
			continue
		}
		g, err := r.loadWithin(v, around)
		if isUnread(err) {
			return nil, err
		}
		if err == nil {
			subs[id] = g
		}
	}
	return subs, nil
}

// compileStored compiles what was checked when it was put. Schemas are checked
// when they are used, and limits were those of then.
func (r *Registry) compileStored(v *entry, file storedFile, inside subgraphs) (*graph.Graph, error) {
	env := r.env
	env.Lookup, env.CheckSchema, env.CheckValue, env.Limits = inside.lookup, nil, nil, graph.Limits{}
	r.compiling <- struct{}{}
	defer func() { <-r.compiling }()
	g, err := compileFile(file.File, env)
	if err != nil {
		return nil, unusable(v, err)
	}
	r.cache.put(v, g, g.Footprint(file.bytes))
	return g, nil
}

func unusable(v *entry, cause error) error {
	return runtime.Errorf(runtime.ReasonGraphVersionUnavailable,
		"graph %q version %q is stored, but does not compile in this server: %w", v.name, v.version, cause).
		With("graph", v.name).With("version", v.version)
}
