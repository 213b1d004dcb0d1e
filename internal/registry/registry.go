// Package registry keeps compiled graphs: those that were put through the API
// and stored, and those that lie in a folder as files. A version never changes
// once it is known.
package registry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/graph/graphfile"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Options say what a registry works with.
type Options struct {
	// Store keeps the graphs; nil = they are known in this process only.
	Store checkpoint.Graphs
	// Env is what graphs are compiled against. Its Lookup is not used: the
	// registry's own graphs are what subgraphs are looked up in.
	Env    graph.Env
	Logger *zap.Logger      // silent when nil
	Now    func() time.Time // time.Now when nil
}

// Registry finds graphs by name and version. Reading takes no lock. It is safe
// for concurrent use.
type Registry struct {
	store checkpoint.Graphs
	env   graph.Env
	log   *zap.Logger
	now   func() time.Time

	shelf atomic.Pointer[shelf]

	mu     sync.Mutex          // held by whoever changes the shelf
	broken map[identity]error  // stored, but they do not compile here
	files  map[string]identity // by path: what LoadDir last made of it
}

// shelf is everything there is, by name. It is never changed, only replaced.
type shelf map[string]*versions

// versions are all of one graph. They are never changed, only replaced.
type versions struct {
	list   []entry // oldest first
	newest *graph.Graph
}

type entry struct {
	graph   *graph.Graph
	created time.Time
}

type identity struct{ name, version string }

// New makes a registry with all graphs that are stored. One that does not
// compile in this process is logged and left out. The error says that the
// store could not be read.
func New(ctx context.Context, options Options) (*Registry, error) {
	r := &Registry{
		store: options.Store, env: options.Env, log: options.Logger, now: options.Now,
		broken: make(map[identity]error), files: make(map[string]identity),
	}
	if r.log == nil {
		r.log = zap.NewNop()
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.shelf.Store(&shelf{})
	r.env.Lookup = r.Graph
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Graph returns a version of a graph, the newest for an empty version, or
// false when there is none.
func (r *Registry) Graph(name, version string) (*graph.Graph, bool) {
	v := (*r.shelf.Load())[name]
	if v == nil {
		return nil, false
	}
	if version == "" {
		return v.newest, true
	}
	e := v.find(version)
	if e == nil {
		return nil, false
	}
	return e.graph, true
}

func (v *versions) find(version string) *entry {
	for i := range v.list {
		if v.list[i].graph.Version == version {
			return &v.list[i]
		}
	}
	return nil
}

// ListGraphs returns the newest version of every graph, by name.
func (r *Registry) ListGraphs(context.Context) ([]runtime.GraphEntry, error) {
	all := *r.shelf.Load()
	out := make([]runtime.GraphEntry, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v := all[name]
		out = append(out, v.entry(v.newest.Version))
	}
	return out, nil
}

func (v *versions) entry(version string) runtime.GraphEntry {
	out := runtime.GraphEntry{Versions: make([]string, len(v.list))}
	for i := range v.list {
		e := &v.list[i]
		out.Versions[i] = e.graph.Version
		if e.graph.Version == version {
			out.Graph, out.Created = e.graph, e.created
		}
	}
	return out
}

// GetGraph returns a version of a graph; with an empty version the newest. One
// that is not known here is looked for in the store, as another replica may
// have put it. The error is a *runtime.Error.
func (r *Registry) GetGraph(ctx context.Context, name, version string) (runtime.GraphEntry, error) {
	g, ok := r.Graph(name, version)
	if !ok {
		if err := r.Refresh(ctx); err != nil {
			return runtime.GraphEntry{}, err
		}
		if g, ok = r.Graph(name, version); !ok {
			return runtime.GraphEntry{}, r.missing(name, version)
		}
	}
	return (*r.shelf.Load())[name].entry(g.Version), nil
}

// missing says why a graph can't be had.
func (r *Registry) missing(name, version string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, cause := range r.broken {
		if id.name == name && (version == "" || id.version == version) {
			return runtime.Errorf(runtime.ReasonGraphVersionUnavailable,
				"graph %q version %q is stored, but does not compile in this server: %w", name, id.version, cause).
				With("graph", name).With("version", id.version)
		}
	}
	all := *r.shelf.Load()
	v := all[name]
	if v == nil {
		return runtime.Errorf(runtime.ReasonGraphNotFound, "unknown graph %q%s", name,
			graph.Suggest(name, slices.Collect(maps.Keys(all)))).With("graph", name)
	}
	return runtime.Errorf(runtime.ReasonGraphVersionUnavailable, "graph %q has no version %q%s", name, version,
		graph.Suggest(version, v.entry("").Versions)).With("graph", name).With("version", version)
}

// Refresh takes up what others have stored since. It does nothing without a
// store. The error is a *runtime.Error.
func (r *Registry) Refresh(ctx context.Context) error {
	if r.store == nil {
		return nil
	}
	records, err := r.store.GraphRecords(ctx)
	if err != nil {
		return storeError(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range records {
		r.takeUp(&records[i])
	}
	return nil
}

func (r *Registry) takeUp(record *checkpoint.GraphRecord) {
	id := identity{record.Name, record.Version}
	if _, known := r.Graph(id.name, id.version); known {
		return
	}
	g, err := r.compileText(record.Name+".json", record.Source)
	if err != nil {
		if r.broken[id] == nil {
			r.log.Warn("a stored graph does not compile in this server", zap.String("graph", id.name),
				zap.String("version", id.version), zap.Error(err))
		}
		r.broken[id] = err
		return
	}
	delete(r.broken, id)
	newest, ok := r.Graph(id.name, "")
	r.publish(entry{graph: g, created: record.Created})
	if ok && (*r.shelf.Load())[id.name].find(newest.Version).created.After(record.Created) {
		r.prefer(newest)
	}
}

func (r *Registry) compileText(name, text string) (*graph.Graph, error) {
	file, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	env := r.env
	env.Limits = graph.Limits{} // it was within those of its time
	return compileFile(file, env)
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

// publish makes a version visible as the newest of its name. mu is held.
func (r *Registry) publish(e entry) {
	old := *r.shelf.Load()
	next := maps.Clone(old)
	v := &versions{newest: e.graph}
	if before := old[e.graph.Name]; before != nil {
		v.list = slices.Clone(before.list)
	}
	v.list = append(v.list, e)
	slices.SortStableFunc(v.list, func(a, b entry) int { return a.created.Compare(b.created) })
	next[e.graph.Name] = v
	r.shelf.Store(&next)
}

// prefer makes a known version the newest of its name. mu is held.
func (r *Registry) prefer(g *graph.Graph) {
	next := maps.Clone(*r.shelf.Load())
	next[g.Name] = &versions{list: next[g.Name].list, newest: g}
	r.shelf.Store(&next)
}

func storeError(err error) error {
	if refused := runtime.StoreRefusal(err); refused != nil {
		return refused
	}
	return runtime.Errorf(runtime.ReasonStoreUnavailable, "the graphs could not be read or stored: %w", err)
}
