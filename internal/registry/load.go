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

// loadGraph returns the compiled form of a version. The error is a *runtime.Error.
func (r *Registry) loadGraph(v *graphVersion) (*graph.Graph, error) {
	return r.loadNested(v, nil)
}

// loadNested is loadGraph for a graph that others contain, the innermost last.
func (r *Registry) loadNested(v *graphVersion, around []versionID) (*graph.Graph, error) {
	if g := r.cache.getCompiled(v); g != nil {
		return g, nil
	}
	now := r.catalog.Load()
	if f := v.failure.Load(); f != nil && f.catalog == now {
		return nil, f.err
	}
	g, err := r.compileVersion(v, around)
	if err == nil {
		v.failure.Store(nil)
		return g, nil
	}
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
		v.failure.Store(&compileFailure{err, now})
		if !v.wasWarned.Swap(true) {
			r.log.Warn("a stored graph can't be used in this server", zap.String("graph", v.name),
				zap.String("version", v.version), zap.Error(err))
		}
	}
	return nil, err
}

// compileVersion compiles a version, once for all concurrent callers. Graphs in it
// are loaded first: nothing is waited for while others wait for this one.
func (r *Registry) compileVersion(v *graphVersion, around []versionID) (*graph.Graph, error) {
	if g := r.cache.restoreDropped(v); g != nil {
		return g, nil
	}
	made, err, _ := r.readGroup.Do(v.String(), func() (any, error) {
		ctx, cancel := r.newReadContext()
		defer cancel()
		return r.readVersion(ctx, v)
	})
	if err != nil {
		return nil, err
	}
	file, _ := made.(storedFile)
	inside, err := r.loadSubgraphs(file.Spec, append(slices.Clone(around), v.versionID))
	if err != nil {
		return nil, err
	}
	made, err, _ = r.compileGroup.Do(v.String(), func() (any, error) {
		if g := r.cache.getCompiled(v); g != nil {
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

// readVersion gets the source of a version and reads it.
func (r *Registry) readVersion(ctx context.Context, v *graphVersion) (storedFile, error) {
	source, err := r.fetchSource(ctx, v)
	if err != nil {
		return storedFile{}, err
	}
	file, err := parseFile(v.name+".json", source)
	if err != nil {
		return storedFile{}, unusableError(v, err)
	}
	inside := subgraphsOf(file.Spec)
	v.subgraphs.Store(&inside)
	return storedFile{file, len(source)}, nil
}

func (r *Registry) fetchSource(ctx context.Context, v *graphVersion) (string, error) {
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
		return "", translateStoreError(err)
	}
	return record.Source, nil
}

// compiledSubgraphs are the graphs that a Spec names, compiled.
type compiledSubgraphs map[versionID]*graph.Graph

func (s compiledSubgraphs) lookupSubgraph(name, version string) (*graph.Graph, bool) {
	g, ok := s[versionID{name, version}]
	return g, ok
}

// loadSubgraphs loads the graphs that a Spec with pinned versions contains. Those that
// can't be had are left out, for the compiler to name.
func (r *Registry) loadSubgraphs(s *graph.Spec, around []versionID) (compiledSubgraphs, error) {
	subs := make(compiledSubgraphs)
	for i := range s.Nodes {
		sub := s.Nodes[i].Graph
		if sub == nil {
			continue
		}
		id := versionID{sub.Name, sub.Version}
		v := r.catalog.Load().findVersion(id)
		if v == nil || subs[id] != nil || slices.Contains(around, id) {
			continue
		}
		g, err := r.loadNested(v, around)
		if isReadFailure(err) {
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
func (r *Registry) compileStored(v *graphVersion, file storedFile, inside compiledSubgraphs) (*graph.Graph, error) {
	env := r.env
	env.Lookup, env.CheckSchema, env.CheckValue, env.Limits = inside.lookupSubgraph, nil, nil, graph.Limits{}
	r.compileSlots <- struct{}{}
	defer func() { <-r.compileSlots }()
	g, err := compileFile(file.File, env)
	if err != nil {
		return nil, unusableError(v, err)
	}
	r.cache.putCompiled(v, g, g.Footprint(file.bytes))
	return g, nil
}

func unusableError(v *graphVersion, cause error) error {
	return runtime.Errorf(runtime.ReasonGraphVersionUnavailable,
		"graph %q version %q is stored, but does not compile in this server: %w", v.name, v.version, cause).
		With("graph", v.name).With("version", v.version)
}
