// Package registry keeps graphs: those that were put through the API and stored,
// and those that lie in a folder as files. A version never changes once it is
// known. It is compiled when it is used, and kept compiled as long as the cache has
// space.
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Options say what a registry works with.
type Options struct {
	// Store keeps the graphs; nil = they are known in this process only.
	Store checkpoint.Graphs
	// ThreadLister finds out what uses a graph before it is deleted; nil = nothing.
	Threads ThreadLister
	// Env is what graphs are compiled against. Its Lookup is not used: the
	// registry's own graphs are what subgraphs are looked up in.
	Env    graph.Env
	Limits Limits
	Logger *zap.Logger      // silent when nil
	Now    func() time.Time // time.Now when nil
}

// Limits bound what a registry keeps. Zero fields mean the defaults.
type Limits struct {
	Graphs     int // names; 1000
	Versions   int // of all graphs together; 10,000
	CacheBytes int // of compiled graphs that are kept ready; 64 MiB
}

// ThreadLister lists threads.
type ThreadLister interface {
	Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error)
}

// Registry finds graphs by name and version. Reading what is compiled takes no
// lock. It is safe for concurrent use.
type Registry struct {
	store   checkpoint.Graphs
	threads ThreadLister
	env     graph.Env
	limits  Limits
	log     *zap.Logger
	now     func() time.Time

	catalog      atomic.Pointer[catalog]
	cache        *compiledCache
	readGroup    singleflight.Group // of sources, by version
	compileGroup singleflight.Group // by version
	// newReadContext returns the context for reading one graph, for which many
	// may wait.
	newReadContext func() (context.Context, context.CancelFunc)
	// compileSlots bounds what is compiled at the same time.
	compileSlots chan struct{}

	refreshMu sync.Mutex // held while the store's list is read, for the order of lists

	mu            sync.Mutex           // held while what follows is changed, and never for long
	revision      uint64               // of the store's list
	putCount      uint64               // versions that this process has put
	versionByFile map[string]versionID // by path: what LoadDir last made of it
}

// New makes a registry with all graphs that are stored. None is compiled before
// it is used. The error says that the store could not be read.
func New(ctx context.Context, options Options) (*Registry, error) {
	r := &Registry{
		store: options.Store, threads: options.Threads, env: options.Env, log: options.Logger, now: options.Now,
		versionByFile: make(map[string]versionID), compileSlots: make(chan struct{}, max(2, goruntime.GOMAXPROCS(0))),
		limits: Limits{
			Graphs: cmp.Or(options.Limits.Graphs, 1000), Versions: cmp.Or(options.Limits.Versions, 10_000),
			CacheBytes: cmp.Or(options.Limits.CacheBytes, 64<<20),
		},
	}
	r.newReadContext = func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	}
	r.cache = newCompiledCache(r.limits.CacheBytes)
	if r.log == nil {
		r.log = zap.NewNop()
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.catalog.Store(&catalog{})
	if err := r.Refresh(ctx); err != nil {
		if cause := errors.Unwrap(err); cause != nil { // who starts a server may read it
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return nil, err
	}
	return r, nil
}

// Graph returns a version of a graph, the newest that compiles for an empty
// version. The error is a *runtime.Error.
func (r *Registry) Graph(name, version string) (*graph.Graph, error) {
	all := *r.catalog.Load()
	if version != "" {
		v := all.findVersion(versionID{name, version})
		if v == nil {
			return nil, r.missingError(name, version)
		}
		return r.loadGraph(v)
	}
	versions := all[name]
	if versions == nil {
		return nil, r.missingError(name, "")
	}
	g, err := r.loadGraph(versions.newest)
	for _, v := range slices.Backward(versions.list) {
		if !errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
			break
		}
		if older, olderErr := r.loadGraph(v); olderErr == nil {
			return older, nil
		}
	}
	return g, err
}

// maxListBytes bounds the text of the graphs in one answer.
const maxListBytes = 4 << 20

// ListGraphs returns the newest versions of graphs by name, those after a name,
// and whether there are more. They are not compiled.
func (r *Registry) ListGraphs(ctx context.Context, after string, limit int) (list []runtime.GraphEntry, more bool, err error) {
	all := *r.catalog.Load()
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if after != "" && name <= after {
			continue
		}
		if len(list) == limit || bytes > maxListBytes {
			return list, true, nil
		}
		v := all[name].newest
		e := runtime.GraphEntry{Versions: all[name].versionNames(), Created: v.created}
		var size int
		if e.Graph, size, err = r.describeVersion(ctx, v); err != nil {
			return nil, false, err
		}
		bytes += size
		list = append(list, e)
	}
	return list, false, nil
}

// describeVersion returns a graph that has its Spec, if that can be read.
func (r *Registry) describeVersion(ctx context.Context, v *graphVersion) (*graph.Graph, int, error) {
	if l := v.compiled.Load(); l != nil {
		return l.graph, l.bytes / 8, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	file, err := r.readVersion(ctx, v)
	if isReadFailure(err) {
		return nil, 0, err
	}
	return &graph.Graph{Name: v.name, Version: v.version, Spec: file.Spec}, file.bytes, nil
}

// GetGraph returns a version of a graph; with an empty version the newest. One
// that is not known here is looked for in the store, as another replica may
// have put it. The error is a *runtime.Error.
func (r *Registry) GetGraph(ctx context.Context, name, version string) (runtime.GraphEntry, error) {
	g, err := r.Graph(name, version)
	if err != nil {
		if err := r.Refresh(ctx); err != nil {
			return runtime.GraphEntry{}, err
		}
		if g, err = r.Graph(name, version); err != nil {
			return runtime.GraphEntry{}, err
		}
	}
	return r.toEntry(g), nil
}

func (r *Registry) toEntry(g *graph.Graph) runtime.GraphEntry {
	all := *r.catalog.Load()
	e := runtime.GraphEntry{Graph: g, Versions: all[g.Name].versionNames()}
	if v := all.findVersion(versionID{g.Name, g.Version}); v != nil {
		e.Created = v.created
	}
	return e
}

// missingError says why a graph can't be had.
func (r *Registry) missingError(name, version string) error {
	all := *r.catalog.Load()
	if version != "" {
		return runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q has no version %q%s", name, version,
			graph.Suggest(version, all[name].versionNames())).With("graph", name).With("version", version)
	}
	return runtime.Errorf(runtime.ReasonGraphNotFound, "unknown graph %q%s", name,
		graph.Suggest(name, slices.Collect(maps.Keys(all)))).With("graph", name)
}

// Refresh takes up what others have stored or deleted since. It does nothing
// without a store, and costs one small read when nothing has changed. The error
// is a *runtime.Error.
func (r *Registry) Refresh(ctx context.Context) error {
	if r.store == nil {
		return nil
	}
	r.refreshMu.Lock()
	defer r.refreshMu.Unlock()
	r.mu.Lock()
	known, puts := r.revision, r.putCount
	r.mu.Unlock()
	records, revision, err := r.store.GraphVersions(ctx, known)
	if err != nil {
		return translateStoreError(err)
	}
	if revision == known {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = revision
	r.updateCatalog(records, puts, revision < known)
	return nil
}

// updateCatalog makes a catalog of what the store lists. What this process has put
// since the list was asked for stays, and so does everything when the store has
// lost what it had: threads may need it. A version that was made at another time
// than the known one came after that was deleted, and is read anew. mu is held.
func (r *Registry) updateCatalog(records []checkpoint.GraphRecord, puts uint64, lost bool) {
	old := *r.catalog.Load()
	lists, newest := make(map[string][]*graphVersion), make(map[string]*graphVersion)
	listed, replaced := make(map[versionID]bool, len(records)), false
	for name, v := range old {
		newest[name] = v.newest
	}
	for i := range records {
		record := &records[i]
		id := versionID{record.Name, record.Version}
		known, n := old.findVersion(id), newest[id.name]
		v := known
		if known == nil || known.putNumber <= puts && !known.created.Equal(record.Created) {
			v = &graphVersion{versionID: id, created: record.Created}
			replaced = replaced || known != nil
			if n == nil || n == known || !n.created.After(v.created) {
				newest[v.name] = v
			}
		}
		listed[id] = true
		lists[v.name] = append(lists[v.name], v)
	}
	if replaced { // compiled graphs may contain what it was
		r.dropAllCompiled(old)
	}
	for name, versions := range old {
		for _, v := range versions.list {
			switch {
			case listed[v.versionID]:
			case lost || v.putNumber > puts:
				lists[name] = append(lists[name], v)
			default:
				r.cache.removeVersion(v)
			}
		}
	}
	r.catalog.Store(newCatalog(lists, newest))
}

func (r *Registry) dropAllCompiled(all catalog) {
	for _, versions := range all {
		for _, v := range versions.list {
			r.cache.removeVersion(v)
		}
	}
}

// newCatalog makes a catalog of lists. Where the newest is gone the last is.
func newCatalog(lists map[string][]*graphVersion, newest map[string]*graphVersion) *catalog {
	next := make(catalog, len(lists))
	for name, list := range lists {
		v := newVersionList(list)
		v.newest = v.list[len(v.list)-1]
		if n := newest[name]; n != nil && v.byVersion[n.version] == n {
			v.newest = n
		}
		next[name] = v
	}
	return &next
}

func parseFile(name, text string) (graphfile.File, error) {
	spec, positions, err := graphfile.Parse(name, []byte(text))
	if spec == nil {
		return graphfile.File{}, err
	}
	return graphfile.File{Path: name, Spec: spec, Positions: positions, Err: err}, nil
}

// compileFile compiles a file; what is wrong with it is a *graph.BuildError.
func compileFile(file graphfile.File, env graph.Env) (*graph.Graph, error) {
	g, err := file.Compile(env)
	if build := (*graph.BuildError)(nil); errors.As(err, &build) {
		return nil, build
	}
	return g, err
}

// translateStoreError puts what a store answered into the words of a client. The cause
// names files and keys and is for the operator.
func translateStoreError(err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return runtime.Errorf(runtime.ReasonCheckpointCorrupt, "a stored graph can't be read").WithCause(err)
	}
	return runtime.TranslateStoreError(err)
}

// isReadFailure reports whether an error leaves open what is stored, as the store
// could not be read.
func isReadFailure(err error) bool {
	refused, ok := errors.AsType[*runtime.Error](err)
	return ok && (refused.IsStoreFault() || refused.Reason == runtime.ReasonCheckpointCorrupt)
}
