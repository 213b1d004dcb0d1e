// Package registry stores graphs: those that were put through the API, and those
// from files of a folder. A version never changes. The registry compiles it when it
// is used, and keeps it compiled while the cache has space.
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

// Options are the parts that a registry uses.
type Options struct {
	// Store stores the graphs; nil = only this process knows them.
	Store checkpoint.Graphs
	// Threads finds threads that use a graph before it is deleted; nil = none are
	// checked.
	Threads ThreadLister
	// Env is the environment in which graphs are compiled. Its Lookup is not used,
	// because subgraphs are found in the registry itself.
	Env    graph.Env
	Limits Limits
	// Tenants limit the graphs of each tenant; nil = no tenant has a limit.
	Tenants runtime.TenantLimits
	// HidesNames keeps the names of other graphs and of threads out of errors: a caller
	// may not know of them.
	HidesNames bool
	Logger     *zap.Logger      // silent when nil
	Now        func() time.Time // time.Now when nil
}

// Limits bound the contents of a registry. Zero fields mean the defaults.
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

// Registry finds graphs by name and version, and adds and removes versions. It is
// safe for concurrent use.
type Registry struct {
	*versionLoader

	threads ThreadLister
	limits  Limits
	tenants runtime.TenantLimits
	now     func() time.Time

	hidesNames bool

	refreshMu sync.Mutex // held while the store's list is read, for the order of lists

	mu            sync.Mutex           // held briefly, while the fields below are changed
	revision      uint64               // of the store's list
	putCount      uint64               // versions that this process has put
	versionByFile map[string]versionID // by path: the version that LoadDir last made of the file
}

// New makes a registry with all stored graphs. Each is compiled when it is used
// first. The error is that of the store, which could not be read.
func New(ctx context.Context, options Options) (*Registry, error) {
	options = options.withDefaults()
	r := &Registry{
		versionLoader: newVersionLoader(ctx, options), threads: options.Threads, limits: options.Limits, tenants: options.Tenants,
		now: options.Now, hidesNames: options.HidesNames,
		versionByFile: make(map[string]versionID),
	}
	if err := r.Refresh(ctx); err != nil {
		if cause := errors.Unwrap(err); cause != nil { // shown to the operator who starts the server
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return nil, err
	}
	return r, nil
}

// Graph returns a version of a graph; an empty version means the newest that
// compiles. The error is a *runtime.Error.
func (r *Registry) Graph(name, version string) (*graph.Graph, error) {
	all := *r.catalog.Load()
	if version != "" {
		v := all.findVersion(versionID{name, version})
		if v == nil {
			return nil, r.missingError(name, version)
		}
		return r.loadGraph(v)
	}
	versions := all.findGraph(name)
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

// Versions lists the newest version of a graph, whether it compiles or not, and those
// that were put before it, newest first, up to a number. It does not read the store.
func (r *Registry) Versions(name string, most int) []string {
	versions := r.catalog.Load().findGraph(name)
	if versions == nil {
		return nil
	}
	newest := slices.Index(versions.list, versions.newest)
	out := make([]string, 0, min(most, newest+1))
	for _, v := range slices.Backward(versions.list[:newest+1]) {
		if len(out) == most {
			break
		}
		out = append(out, v.version)
	}
	return out
}

// maxListBytes bounds the text of the graphs in one answer.
const maxListBytes = 4 << 20

// ListGraphs returns the newest versions of the graphs of a tenant by name, those after a
// name, and reports whether there are more. They are not compiled.
func (r *Registry) ListGraphs(
	ctx context.Context, owner, after string, limit int,
) (list []runtime.GraphEntry, more bool, err error) {
	all := (*r.catalog.Load())[owner]
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

// GetGraph returns a version of a graph; an empty version means the newest. It
// looks for an unknown version in the store, because another replica may have put
// it. The error is a *runtime.Error.
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
	e := r.toEntry(g)
	if all := r.catalog.Load().findGraph(name); version == "" && all != nil && all.newest.version != g.Version {
		e.Skipped = all.newest.version
	}
	return e, nil
}

func (r *Registry) toEntry(g *graph.Graph) runtime.GraphEntry {
	all := *r.catalog.Load()
	e := runtime.GraphEntry{Graph: g, Versions: all.findGraph(g.Name).versionNames()}
	if v := all.findVersion(versionID{g.Name, g.Version}); v != nil {
		e.Created = v.created
	}
	return e
}

// missingError returns the error for a graph that can't be loaded. It suggests names of the
// same tenant.
func (r *Registry) missingError(name, version string) error {
	all := *r.catalog.Load()
	if version != "" {
		return runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q has no version %q%s", clientName(name), version,
			graph.Suggest(version, all.findGraph(name).versionNames())).With("graph", clientName(name)).With("version", version)
	}
	if r.hidesNames {
		return runtime.Errorf(runtime.ReasonGraphNotFound, "unknown graph %q", clientName(name)).With("graph", clientName(name))
	}
	var known []string
	for qualified := range all.namesBeside(name) {
		known = append(known, clientName(qualified))
	}
	return runtime.Errorf(runtime.ReasonGraphNotFound, "unknown graph %q%s", clientName(name),
		graph.Suggest(clientName(name), known)).With("graph", clientName(name))
}

// translateStoreError converts an error of the store for a client. The cause names
// files and keys and is for the operator.
func translateStoreError(err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) {
		return runtime.Errorf(runtime.ReasonCheckpointCorrupt, "a stored graph can't be read").WithCause(err)
	}
	return runtime.TranslateStoreError(err)
}
