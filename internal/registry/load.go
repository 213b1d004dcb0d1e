package registry

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// storeTimeout bounds the reading of a graph.
const storeTimeout = 5 * time.Second

// versionLoader reads and compiles versions of graphs when they are used. A read of
// a compiled version takes no lock.
type versionLoader struct {
	store checkpoint.Graphs
	env   graph.Env
	log   *zap.Logger

	catalog      atomic.Pointer[catalog]
	cache        *compiledCache
	readGroup    singleflight.Group // of sources, by version
	compileGroup singleflight.Group // by version
	// newReadContext returns the context for reading a graph. Many callers may
	// wait for that read.
	newReadContext func() (context.Context, context.CancelFunc)
	// compileSlots bounds the graphs that are compiled at the same time.
	compileSlots chan struct{}
}

// newVersionLoader makes a loader whose reads outlive the end of ctx.
func newVersionLoader(ctx context.Context, options Options) *versionLoader {
	l := &versionLoader{
		store: options.Store, env: options.Env, log: options.Logger, cache: newCompiledCache(options.Limits.CacheBytes),
		compileSlots: make(chan struct{}, max(2, goruntime.GOMAXPROCS(0))),
		newReadContext: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		},
	}
	l.catalog.Store(&catalog{})
	return l
}

// loadGraph returns the compiled form of a version. The error is a *runtime.Error.
func (l *versionLoader) loadGraph(v *graphVersion) (*graph.Graph, error) {
	return l.loadNested(v, nil)
}

// loadNested is loadGraph for a subgraph. around lists the graphs that contain it,
// the innermost last.
func (l *versionLoader) loadNested(v *graphVersion, around []versionID) (*graph.Graph, error) {
	if g := l.cache.getCompiled(v); g != nil {
		return g, nil
	}
	now := l.catalog.Load()
	if f := v.failure.Load(); f != nil && f.catalog == now {
		return nil, f.err
	}
	g, err := l.compileVersion(v, around)
	if err == nil {
		v.failure.Store(nil)
		return g, nil
	}
	if errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
		v.failure.Store(&compileFailure{err, now})
		if !v.wasWarned.Swap(true) {
			l.log.Warn("a stored graph can't be used in this server", zap.String("graph", v.name),
				zap.String("version", v.version), zap.Error(err))
		}
	}
	return nil, err
}

// compileVersion compiles a version, once for all concurrent callers. It loads the
// subgraphs first, so that it does not wait while others wait for this version.
func (l *versionLoader) compileVersion(v *graphVersion, around []versionID) (*graph.Graph, error) {
	if g := l.cache.restoreDropped(v); g != nil {
		return g, nil
	}
	made, err, _ := l.readGroup.Do(v.String(), func() (any, error) {
		ctx, cancel := l.newReadContext()
		defer cancel()
		return l.readVersion(ctx, v)
	})
	if err != nil {
		return nil, err
	}
	file, _ := made.(storedFile)
	inside, err := l.loadSubgraphs(v.tenantName(), file.Spec, append(slices.Clone(around), v.versionID))
	if err != nil {
		return nil, err
	}
	made, err, _ = l.compileGroup.Do(v.String(), func() (any, error) {
		if g := l.cache.getCompiled(v); g != nil {
			return g, nil
		}
		return l.compileStored(v, file, inside)
	})
	g, _ := made.(*graph.Graph)
	return g, err
}

// storedFile is a stored graph that was read.
type storedFile struct {
	graphfile.File

	bytes int
}

// readVersion reads and parses the source of a version.
func (l *versionLoader) readVersion(ctx context.Context, v *graphVersion) (storedFile, error) {
	source, err := l.fetchSource(ctx, v)
	if err != nil {
		return storedFile{}, err
	}
	file, err := parseFile(v.name+".json", source)
	if err != nil {
		return storedFile{}, unusableError(v, err)
	}
	inside := subgraphsOf(v.tenantName(), file.Spec)
	v.subgraphs.Store(&inside)
	return storedFile{file, len(source)}, nil
}

func (l *versionLoader) fetchSource(ctx context.Context, v *graphVersion) (string, error) {
	if v.source != "" {
		return v.source, nil
	}
	record, err := l.store.GraphRecord(ctx, v.name, v.version)
	if errors.Is(err, checkpoint.ErrGraphNotFound) {
		return "", runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q version %q was deleted", clientName(v.name), v.version).
			With("graph", clientName(v.name)).With("version", v.version)
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, context.Cause(ctx))
	}
	if err != nil {
		return "", translateStoreError(err)
	}
	return record.Source, nil
}

// compiledSubgraphs are the compiled graphs that a Spec names, as it names them.
type compiledSubgraphs map[versionID]*graph.Graph

func (s compiledSubgraphs) lookupSubgraph(name, version string) (*graph.Graph, bool) {
	g, ok := s[versionID{name, version}]
	return g, ok
}

// loadSubgraphs loads the graphs of a tenant that a Spec with pinned versions contains. It
// leaves out graphs that it can't load, for the compiler to report.
func (l *versionLoader) loadSubgraphs(owner string, s *graph.Spec, around []versionID) (compiledSubgraphs, error) {
	subs := make(compiledSubgraphs)
	for i := range s.Nodes {
		sub := s.Nodes[i].Graph
		if sub == nil {
			continue
		}
		id := versionID{sub.Name, sub.Version}
		v := l.catalog.Load().findVersion(versionID{qualifyName(owner, sub.Name), sub.Version})
		if v == nil || subs[id] != nil || slices.Contains(around, v.versionID) {
			continue
		}
		g, err := l.loadNested(v, around)
		if isReadFailure(err) {
			return nil, err
		}
		if err == nil {
			subs[id] = g
		}
	}
	return subs, nil
}

// compileStored compiles a graph that was checked when it was put. Its schemas are
// checked when they are used, and its endpoints when they are dialled, because the
// limits may have changed since.
func (l *versionLoader) compileStored(v *graphVersion, file storedFile, inside compiledSubgraphs) (*graph.Graph, error) {
	env := l.env
	env.Lookup, env.CheckSchema, env.CheckValue, env.Limits = inside.lookupSubgraph, nil, nil, graph.Limits{}
	env.CheckEndpoint = nil
	l.compileSlots <- struct{}{}
	defer func() { <-l.compileSlots }()
	g, err := compileFile(v.tenantName(), file.File, env)
	if err != nil {
		return nil, unusableError(v, err)
	}
	l.cache.putCompiled(v, g, g.Footprint(file.bytes))
	return g, nil
}

// compileGraph checks a graph that is put for a tenant, and compiles it.
func (l *versionLoader) compileGraph(ctx context.Context, owner string, file graphfile.File) (*graph.Graph, error) {
	inside, err := l.loadSubgraphs(owner, file.Spec, nil)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // select takes any of two ready cases
		return nil, context.Cause(ctx)
	}
	select {
	case l.compileSlots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-l.compileSlots }()
	env := l.env
	env.Lookup = inside.lookupSubgraph
	return compileFile(owner, file, env)
}

func unusableError(v *graphVersion, cause error) error {
	return runtime.Errorf(runtime.ReasonGraphVersionUnavailable,
		"graph %q version %q is stored, but does not compile in this server: %w", clientName(v.name), v.version, cause).
		With("graph", clientName(v.name)).With("version", v.version)
}

func parseFile(name, text string) (graphfile.File, error) {
	spec, positions, err := graphfile.Parse(name, []byte(text))
	if spec == nil {
		return graphfile.File{}, err
	}
	return graphfile.File{Path: name, Spec: spec, Positions: positions, Err: err}, nil
}

// compileFile compiles a file of a tenant. It returns a *graph.BuildError for a graph with
// problems. The file has the names of the tenant, and the compiled graph that of the
// catalog.
func compileFile(owner string, file graphfile.File, env graph.Env) (*graph.Graph, error) {
	g, err := file.Compile(env)
	if build := (*graph.BuildError)(nil); errors.As(err, &build) {
		return nil, build
	}
	if err == nil {
		g.Name, err = tenant.Qualify(owner, g.Name)
	}
	return g, err
}

// isReadFailure reports whether an error means that the store could not be read, so
// that the stored graph is unknown.
func isReadFailure(err error) bool {
	refused, ok := errors.AsType[*runtime.Error](err)
	return ok && (refused.IsStoreFault() || refused.Reason == runtime.ReasonCheckpointCorrupt)
}

// describeVersion returns a graph that has its Spec, if the Spec can be read.
func (l *versionLoader) describeVersion(ctx context.Context, v *graphVersion) (*graph.Graph, int, error) {
	if c := v.compiled.Load(); c != nil {
		return c.graph, c.bytes / 8, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	file, err := l.readVersion(ctx, v)
	if isReadFailure(err) {
		return nil, 0, err
	}
	return &graph.Graph{Name: v.name, Version: v.version, Spec: file.Spec}, file.bytes, nil
}

// readSubgraphs lists the graphs that a version contains. Versions never change, so
// it reads each at most once.
func (l *versionLoader) readSubgraphs(ctx context.Context, v *graphVersion) ([]versionID, error) {
	if known := v.subgraphs.Load(); known != nil {
		return *known, nil
	}
	g, _, err := l.describeVersion(ctx, v)
	if err != nil {
		return nil, err
	}
	inside := subgraphsOf(v.tenantName(), g.Spec)
	v.subgraphs.Store(&inside)
	return inside, nil
}

// subgraphsOf lists the graphs of a tenant that a Spec names, as the catalog names them.
func subgraphsOf(owner string, s *graph.Spec) []versionID {
	inside := []versionID{}
	if s == nil {
		return inside
	}
	for i := range s.Nodes {
		if sub := s.Nodes[i].Graph; sub != nil {
			inside = append(inside, versionID{qualifyName(owner, sub.Name), sub.Version})
		}
	}
	return inside
}
