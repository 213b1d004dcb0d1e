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
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
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

func (o Options) withDefaults() Options {
	o.Limits = Limits{
		Graphs: cmp.Or(o.Limits.Graphs, 1000), Versions: cmp.Or(o.Limits.Versions, 10_000),
		CacheBytes: cmp.Or(o.Limits.CacheBytes, 64<<20),
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// ThreadLister lists threads.
type ThreadLister interface {
	Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error)
}

// Registry finds graphs by name and version, and changes which there are. It is safe
// for concurrent use.
type Registry struct {
	*versionLoader

	threads ThreadLister
	limits  Limits
	now     func() time.Time

	refreshMu sync.Mutex // held while the store's list is read, for the order of lists

	mu            sync.Mutex           // held while what follows is changed, and never for long
	revision      uint64               // of the store's list
	putCount      uint64               // versions that this process has put
	versionByFile map[string]versionID // by path: what LoadDir last made of it
}

// New makes a registry with all graphs that are stored. None is compiled before
// it is used. The error says that the store could not be read.
func New(ctx context.Context, options Options) (*Registry, error) {
	options = options.withDefaults()
	r := &Registry{
		versionLoader: newVersionLoader(ctx, options), threads: options.Threads, limits: options.Limits, now: options.Now,
		versionByFile: make(map[string]versionID),
	}
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

// translateStoreError puts what a store answered into the words of a client. The cause
// names files and keys and is for the operator.
func translateStoreError(err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return runtime.Errorf(runtime.ReasonCheckpointCorrupt, "a stored graph can't be read").WithCause(err)
	}
	return runtime.TranslateStoreError(err)
}
