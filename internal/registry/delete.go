package registry

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// How far is looked for what uses a graph.
const (
	maxThreadsSeen = 10_000 // those that changed last
	threadsPerPage = 500
	maxNamed       = 10 // users that an error names
)

// DeleteGraph removes a version of a graph, or all for an empty version, and
// returns what it has removed. Unless forced it is refused while threads are
// pinned to one of them or other graphs contain one. The error is a
// *runtime.Error; then some of several versions may be gone, and calling again
// removes the others.
func (r *Registry) DeleteGraph(ctx context.Context, name, version string, force bool) ([]string, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	doomed, err := r.doomed(name, version)
	if err != nil {
		return nil, err
	}
	if !force {
		if err := r.unused(ctx, name, doomed); err != nil {
			return nil, err
		}
	}
	var gone []*entry
	for _, v := range doomed {
		if err = r.remove(ctx, v); err != nil {
			break
		}
		gone = append(gone, v)
	}
	r.hide(name, gone)
	return newVersions(gone).names(), err
}

// doomed lists the versions that are meant.
func (r *Registry) doomed(name, version string) ([]*entry, error) {
	all := *r.shelf.Load()
	switch {
	case all[name] == nil:
		return nil, r.missing(name, "")
	case version == "":
		return slices.Clone(all[name].list), nil
	}
	v := all[name].by[version]
	if v == nil {
		return nil, r.missing(name, version)
	}
	return []*entry{v}, nil
}

func (r *Registry) remove(ctx context.Context, v *entry) error {
	if r.store == nil {
		return nil
	}
	err := r.store.DeleteGraph(ctx, v.name, v.version)
	if err != nil && !errors.Is(err, checkpoint.ErrGraphNotFound) {
		return storeError(err)
	}
	return nil
}

// hide takes versions from the shelf.
func (r *Registry) hide(name string, gone []*entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, id := range r.files {
		if slices.ContainsFunc(gone, func(v *entry) bool { return v.identity == id }) {
			delete(r.files, path) // a changed file may bring it back
		}
	}
	for _, v := range gone {
		r.cache.forget(v)
	}
	if all := *r.shelf.Load(); all[name] != nil {
		r.shelf.Store(all.without(name, gone))
	}
}

// unused refuses versions that something uses, or may use.
func (r *Registry) unused(ctx context.Context, name string, doomed []*entry) error {
	graphs, err := r.users(ctx, name, doomed)
	if err != nil {
		return err
	}
	if len(graphs) > 0 {
		return inUse(name, doomed, "other graphs contain it: "+strings.Join(graphs, ", ")).With("graphs", strings.Join(graphs, ","))
	}
	threads, complete, err := r.pinned(ctx, name, doomed)
	switch {
	case err != nil:
		return storeError(err)
	case len(threads) > 0:
		return inUse(name, doomed, "threads run it, among them "+strings.Join(threads, ", ")).With("threads", strings.Join(threads, ","))
	case !complete:
		return inUse(name, doomed, "threads may run it: there are more than the "+strconv.Itoa(maxThreadsSeen)+
			" that were looked at, those that changed last")
	}
	return nil
}

func inUse(name string, doomed []*entry, why string) *runtime.Error {
	e := runtime.Errorf(runtime.ReasonGraphInUse, "graph %q can't be deleted: %s; force it if they need not go on", name, why).
		With("graph", name)
	if len(doomed) == 1 {
		e = e.With("version", doomed[0].version)
	}
	return e
}

// users names other graphs that contain one of the versions.
func (r *Registry) users(ctx context.Context, name string, doomed []*entry) ([]string, error) {
	if err := r.learnContents(ctx, doomed); err != nil {
		return nil, err
	}
	var found []string
	for _, versions := range *r.shelf.Load() {
		for _, v := range versions.list {
			if slices.Contains(doomed, v) {
				continue
			}
			inside, err := r.contents(ctx, v)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(inside, func(id identity) bool { return id.name == name && isAmong(doomed, id.version) }) {
				found = append(found, v.String())
			}
			if len(found) == maxNamed {
				return found, nil
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// readAhead is how many sources are read at the same time.
const readAhead = 16

// learnContents reads what is not known yet of what graphs contain, those left out
// which are to go. A server does so once.
func (r *Registry) learnContents(ctx context.Context, without []*entry) error {
	each, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	unknown := make(chan *entry)
	var readers sync.WaitGroup
	for range readAhead {
		readers.Go(contain.Func(func() {
			for v := range unknown {
				if each.Err() != nil {
					continue
				}
				if _, err := r.contents(each, v); err != nil {
					stop(err)
				}
			}
		}, func(p *contain.PanicError) { stop(p) }))
	}
	r.eachUnknown(without, func(v *entry) bool {
		select {
		case unknown <- v:
		case <-each.Done():
		}
		return each.Err() == nil
	})
	close(unknown)
	readers.Wait()
	if each.Err() != nil {
		return context.Cause(each)
	}
	return nil
}

// eachUnknown visits the versions of which is not known what they contain, until
// visit says that it is enough.
func (r *Registry) eachUnknown(without []*entry, visit func(*entry) bool) {
	for _, versions := range *r.shelf.Load() {
		for _, v := range versions.list {
			if v.inside.Load() == nil && !slices.Contains(without, v) && !visit(v) {
				return
			}
		}
	}
}

func isAmong(list []*entry, version string) bool {
	return slices.ContainsFunc(list, func(v *entry) bool { return v.version == version })
}

// contents lists the graphs that a version contains. As versions never change
// it is read at most once.
func (r *Registry) contents(ctx context.Context, v *entry) ([]identity, error) {
	if known := v.inside.Load(); known != nil {
		return *known, nil
	}
	g, _, err := r.described(ctx, v)
	if err != nil {
		return nil, err
	}
	inside := insideOf(g.Spec)
	v.inside.Store(&inside)
	return inside, nil
}

func insideOf(s *graph.Spec) []identity {
	inside := []identity{}
	if s == nil {
		return inside
	}
	for i := range s.Nodes {
		if sub := s.Nodes[i].Graph; sub != nil {
			inside = append(inside, identity{sub.Name, sub.Version})
		}
	}
	return inside
}

// pinned names threads that are pinned to one of the versions, and says
// whether all threads were looked at.
func (r *Registry) pinned(ctx context.Context, name string, doomed []*entry) (threads []string, complete bool, err error) {
	if r.threads == nil {
		return nil, true, nil
	}
	q := checkpoint.ThreadQuery{Limit: threadsPerPage}
	for range maxThreadsSeen / threadsPerPage {
		heads, err := r.threads.Threads(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range heads {
			if h := &heads[i]; h.Graph == name && isAmong(doomed, h.Version) {
				threads = append(threads, h.Thread)
			}
			if len(threads) == maxNamed {
				return threads, true, nil
			}
		}
		if !checkpoint.IsPart(heads, threadsPerPage, (*checkpoint.Head).Size) {
			return threads, true, nil
		}
		last := &heads[len(heads)-1]
		q.Before = checkpoint.ThreadPosition{Updated: last.Updated, Thread: last.Thread}
	}
	return threads, false, nil
}
