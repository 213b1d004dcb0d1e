// Package registry keeps graphs: those that were put through the API and
// stored, and those that lie in a folder as files. A version never changes once
// it is known. It is compiled when it is used, and kept compiled as long as
// there is room.
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
	// Threads finds out what uses a graph before it is deleted; nil = nothing.
	Threads Threads
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

// Threads lists threads.
type Threads interface {
	Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error)
}

// Registry finds graphs by name and version. Reading what is compiled takes no
// lock. It is safe for concurrent use.
type Registry struct {
	store   checkpoint.Graphs
	threads Threads
	env     graph.Env
	limits  Limits
	log     *zap.Logger
	now     func() time.Time

	shelf    atomic.Pointer[shelf]
	cache    *cache
	reads    singleflight.Group // of sources, by version
	compiles singleflight.Group // by version
	// patience begins the reading of one graph, for which many may wait.
	patience func() (context.Context, context.CancelFunc)
	// compiling bounds what is compiled at the same time.
	compiling chan struct{}

	refreshing sync.Mutex // held while the store's list is read, for the order of lists

	mu       sync.Mutex          // held by whoever changes what follows, and never for long
	revision uint64              // of the store's list
	puts     uint64              // versions that this process has put
	files    map[string]identity // by path: what LoadDir last made of it
}

// New makes a registry with all graphs that are stored. None is compiled before
// it is used. The error says that the store could not be read.
func New(ctx context.Context, options Options) (*Registry, error) {
	r := &Registry{
		store: options.Store, threads: options.Threads, env: options.Env, log: options.Logger, now: options.Now,
		files: make(map[string]identity), compiling: make(chan struct{}, max(2, goruntime.GOMAXPROCS(0))),
		limits: Limits{
			Graphs: cmp.Or(options.Limits.Graphs, 1000), Versions: cmp.Or(options.Limits.Versions, 10_000),
			CacheBytes: cmp.Or(options.Limits.CacheBytes, 64<<20),
		},
	}
	r.patience = func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	}
	r.cache = newCache(r.limits.CacheBytes)
	if r.log == nil {
		r.log = zap.NewNop()
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.shelf.Store(&shelf{})
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
	all := *r.shelf.Load()
	if version != "" {
		v := all.find(identity{name, version})
		if v == nil {
			return nil, r.missing(name, version)
		}
		return r.load(v)
	}
	versions := all[name]
	if versions == nil {
		return nil, r.missing(name, "")
	}
	g, err := r.load(versions.newest)
	for _, v := range slices.Backward(versions.list) {
		if !errors.Is(err, &runtime.Error{Reason: runtime.ReasonGraphVersionUnavailable}) {
			break
		}
		if older, olderErr := r.load(v); olderErr == nil {
			return older, nil
		}
	}
	return g, err
}

// maxListed bounds the text of the graphs in one answer.
const maxListed = 4 << 20

// ListGraphs returns the newest versions of graphs by name, those after a name,
// and whether there are more. They are not compiled.
func (r *Registry) ListGraphs(ctx context.Context, after string, limit int) (list []runtime.GraphEntry, more bool, err error) {
	all := *r.shelf.Load()
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if after != "" && name <= after {
			continue
		}
		if len(list) == limit || bytes > maxListed {
			return list, true, nil
		}
		v := all[name].newest
		e := runtime.GraphEntry{Versions: all[name].names(), Created: v.created}
		var size int
		if e.Graph, size, err = r.described(ctx, v); err != nil {
			return nil, false, err
		}
		bytes += size
		list = append(list, e)
	}
	return list, false, nil
}

// described returns a graph that has its Spec, if that can be read.
func (r *Registry) described(ctx context.Context, v *entry) (*graph.Graph, int, error) {
	if l := v.loaded.Load(); l != nil {
		return l.graph, l.bytes / 8, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	file, err := r.read(ctx, v)
	if isUnread(err) {
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
	return r.entry(g), nil
}

func (r *Registry) entry(g *graph.Graph) runtime.GraphEntry {
	all := *r.shelf.Load()
	e := runtime.GraphEntry{Graph: g, Versions: all[g.Name].names()}
	if v := all.find(identity{g.Name, g.Version}); v != nil {
		e.Created = v.created
	}
	return e
}

// missing says why a graph can't be had.
func (r *Registry) missing(name, version string) error {
	all := *r.shelf.Load()
	if version != "" {
		return runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q has no version %q%s", name, version,
			graph.Suggest(version, all[name].names())).With("graph", name).With("version", version)
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
	r.refreshing.Lock()
	defer r.refreshing.Unlock()
	r.mu.Lock()
	known, puts := r.revision, r.puts
	r.mu.Unlock()
	records, revision, err := r.store.GraphVersions(ctx, known)
	if err != nil {
		return storeError(err)
	}
	if revision == known {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = revision
	r.takeUp(records, puts, revision < known)
	return nil
}

// takeUp makes a shelf of what the store lists. What this process has put since
// the list was asked for stays, and so does everything when the store has lost
// what it had: threads may need it. A version that was made at another time than
// the known one came after that was deleted, and is read anew. mu is held.
func (r *Registry) takeUp(records []checkpoint.GraphRecord, puts uint64, lost bool) {
	old := *r.shelf.Load()
	lists, newest := make(map[string][]*entry), make(map[string]*entry)
	listed, replaced := make(map[identity]bool, len(records)), false
	for name, v := range old {
		newest[name] = v.newest
	}
	for i := range records {
		record := &records[i]
		id := identity{record.Name, record.Version}
		known, n := old.find(id), newest[id.name]
		v := known
		if known == nil || known.order <= puts && !known.created.Equal(record.Created) {
			v = &entry{identity: id, created: record.Created}
			replaced = replaced || known != nil
			if n == nil || n == known || !n.created.After(v.created) {
				newest[v.name] = v
			}
		}
		listed[id] = true
		lists[v.name] = append(lists[v.name], v)
	}
	if replaced { // compiled graphs may contain what it was
		r.forgetCompiled(old)
	}
	for name, versions := range old {
		for _, v := range versions.list {
			switch {
			case listed[v.identity]:
			case lost || v.order > puts:
				lists[name] = append(lists[name], v)
			default:
				r.cache.forget(v)
			}
		}
	}
	r.shelf.Store(arrange(lists, newest))
}

func (r *Registry) forgetCompiled(all shelf) {
	for _, versions := range all {
		for _, v := range versions.list {
			r.cache.forget(v)
		}
	}
}

// arrange makes a shelf of lists. Where the newest is gone the last is.
func arrange(lists map[string][]*entry, newest map[string]*entry) *shelf {
	next := make(shelf, len(lists))
	for name, list := range lists {
		v := newVersions(list)
		v.newest = v.list[len(v.list)-1]
		if n := newest[name]; n != nil && v.by[n.version] == n {
			v.newest = n
		}
		next[name] = v
	}
	return &next
}

func parse(name, text string) (graphfile.File, error) {
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

// storeError puts what a store answered into the words of a client. The cause
// names files and keys and is for the operator.
func storeError(err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return runtime.Errorf(runtime.ReasonCheckpointCorrupt, "a stored graph can't be read").Because(err)
	}
	return runtime.TranslateStoreError(err)
}

// isUnread reports whether an error leaves open what is stored, as the store
// could not be read.
func isUnread(err error) bool {
	refused, ok := errors.AsType[*runtime.Error](err)
	return ok && (refused.StoreAway() || refused.Reason == runtime.ReasonCheckpointCorrupt)
}
