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
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Bounds of the search for users of a graph.
const (
	maxThreadsChecked = 10_000 // the threads of the graph that were created last
	threadsPerPage    = 500
	maxNamedUsers     = 10 // users that an error names
)

// DeleteGraph removes a version of a graph, or all for an empty version, and
// returns the removed versions. Unless forced it refuses while threads are pinned
// to any of them or other graphs contain any. The error is a *runtime.Error. After
// an error some of several versions may be gone, and another call removes the
// others.
func (r *Registry) DeleteGraph(ctx context.Context, d runtime.DeleteGraphRequest) ([]string, error) {
	var all []*graphVersion
	for {
		gone, err := r.deleteApproved(ctx, &d)
		all = append(all, gone...)
		if !errors.Is(err, checkpoint.ErrVersionsChanged) {
			return newVersionList(all).versionNames(), err
		}
	}
}

// deleteApproved removes versions that an approval permits, and returns the removed
// versions. It returns checkpoint.ErrVersionsChanged when the approval has compared with
// other versions than there are.
func (r *Registry) deleteApproved(ctx context.Context, d *runtime.DeleteGraphRequest) (gone []*graphVersion, err error) {
	left, err := r.readVersions(ctx, d.Name)
	if err != nil {
		return nil, err
	}
	if d.Approve != nil {
		if err := d.Approve(ctx); err != nil {
			return nil, err
		}
	}
	doomed, err := r.selectVersions(d.Name, d.Version)
	if err != nil {
		return nil, err
	}
	if !d.Force {
		if err := r.checkUnused(ctx, d.Name, doomed); err != nil {
			return nil, err
		}
	}
	defer func() { r.unpublishVersions(d.Name, gone) }()
	for _, v := range doomed {
		var condition checkpoint.GraphCondition
		if d.Approve != nil {
			condition = checkpoint.ExpectVersions(left...)
		}
		if err := r.deleteStored(ctx, v, condition); err != nil {
			return gone, err
		}
		gone = append(gone, v)
		left = slices.DeleteFunc(left, func(version string) bool { return version == v.version })
	}
	return gone, nil
}

// selectVersions returns the versions to delete.
func (r *Registry) selectVersions(name, version string) ([]*graphVersion, error) {
	all := *r.catalog.Load()
	switch {
	case all.findGraph(name) == nil:
		return nil, r.missingError(name, "")
	case version == "":
		return slices.Clone(all.findGraph(name).list), nil
	}
	v := all.findGraph(name).byVersion[version]
	if v == nil {
		return nil, r.missingError(name, version)
	}
	return []*graphVersion{v}, nil
}

func (r *Registry) deleteStored(ctx context.Context, v *graphVersion, condition checkpoint.GraphCondition) error {
	if r.store == nil {
		return nil
	}
	err := r.store.DeleteGraph(ctx, v.name, v.version, condition)
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrGraphNotFound):
		return nil
	case errors.Is(err, checkpoint.ErrVersionsChanged):
		return err
	}
	return translateStoreError(err)
}

// unpublishVersions removes versions from the catalog.
func (r *Registry) unpublishVersions(name string, gone []*graphVersion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, id := range r.versionByFile {
		if slices.ContainsFunc(gone, func(v *graphVersion) bool { return v.versionID == id }) {
			delete(r.versionByFile, path) // a changed file may bring it back
		}
	}
	for _, v := range gone {
		r.cache.removeVersion(v)
	}
	if all := *r.catalog.Load(); all.findGraph(name) != nil {
		r.catalog.Store(all.withoutVersions(name, gone))
	}
}

// checkUnused returns an error if versions are in use, or may be.
func (r *Registry) checkUnused(ctx context.Context, name string, doomed []*graphVersion) error {
	graphs, err := r.findUsers(ctx, name, doomed)
	if err != nil {
		return err
	}
	if len(graphs) > 0 && r.hidesNames {
		return inUseError(name, doomed, "other graphs contain it")
	}
	if len(graphs) > 0 {
		return inUseError(name, doomed, "other graphs contain it: "+strings.Join(graphs, ", ")).With("graphs", strings.Join(graphs, ","))
	}
	threads, complete, err := r.findPinnedThreads(ctx, name, doomed)
	switch {
	case err != nil:
		return translateStoreError(err)
	case len(threads) > 0 && r.hidesNames:
		return inUseError(name, doomed, "threads are pinned to it")
	case len(threads) > 0:
		return inUseError(name, doomed, "threads are pinned to it, among them "+strings.Join(threads, ", ")).With("threads", strings.Join(threads, ","))
	case !complete:
		return inUseError(name, doomed, "threads may be pinned to it: the graph has more than the "+strconv.Itoa(maxThreadsChecked)+
			" threads that were looked at, those that were created last")
	}
	return nil
}

// inUseError returns the refusal to delete versions that are in use.
func inUseError(name string, doomed []*graphVersion, why string) *runtime.Error {
	e := runtime.Errorf(runtime.ReasonGraphInUse, "graph %q can't be deleted: %s; force it if they need not go on", clientName(name), why).
		With("graph", clientName(name))
	if len(doomed) == 1 {
		e = e.With("version", doomed[0].version)
	}
	return e
}

// findUsers returns other graphs of the tenant that contain any of the versions.
func (r *Registry) findUsers(ctx context.Context, name string, doomed []*graphVersion) ([]string, error) {
	if err := r.readUnknownSubgraphs(ctx, name, doomed); err != nil {
		return nil, err
	}
	var found []string
	for _, versions := range r.catalog.Load().namesBeside(name) {
		for _, v := range versions.list {
			if slices.Contains(doomed, v) {
				continue
			}
			inside, err := r.readSubgraphs(ctx, v)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(inside, func(id versionID) bool { return id.name == name && containsVersion(doomed, id.version) }) {
				found = append(found, versionID{clientName(v.name), v.version}.String())
			}
			if len(found) == maxNamedUsers {
				return found, nil
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// maxParallelReads is the number of sources that are read at the same time.
const maxParallelReads = 16

// readUnknownSubgraphs reads the subgraphs of graphs whose subgraphs are not known
// yet, except for the versions to delete of a name. A server does so once for a tenant.
func (r *Registry) readUnknownSubgraphs(ctx context.Context, name string, without []*graphVersion) error {
	each, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	unknown := make(chan *graphVersion)
	var readers sync.WaitGroup
	for range maxParallelReads {
		readers.Go(contain.Func(func() {
			for v := range unknown {
				if each.Err() != nil {
					continue
				}
				if _, err := r.readSubgraphs(each, v); err != nil {
					stop(err)
				}
			}
		}, func(p *contain.PanicError) { stop(p) }))
	}
	r.visitUnknown(name, without, func(v *graphVersion) bool {
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

// visitUnknown visits the versions whose subgraphs are not known, of the tenant to which a
// name belongs, until visit returns false.
func (r *Registry) visitUnknown(name string, without []*graphVersion, visit func(*graphVersion) bool) {
	for _, versions := range r.catalog.Load().namesBeside(name) {
		for _, v := range versions.list {
			if v.subgraphs.Load() == nil && !slices.Contains(without, v) && !visit(v) {
				return
			}
		}
	}
}

func containsVersion(list []*graphVersion, version string) bool {
	return slices.ContainsFunc(list, func(v *graphVersion) bool { return v.version == version })
}

// findPinnedThreads returns threads that are pinned to any of the versions, and
// reports whether it has checked all threads of the graph.
func (r *Registry) findPinnedThreads(ctx context.Context, name string, doomed []*graphVersion) (threads []string, complete bool, err error) {
	if r.threads == nil {
		return nil, true, nil
	}
	owner, _ := tenant.Split(name) // threads use graphs of their tenant alone
	q := checkpoint.ThreadQuery{Tenant: owner, Graph: name, Limit: threadsPerPage}
	for range maxThreadsChecked / threadsPerPage {
		heads, err := r.threads.Threads(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range heads {
			if h := &heads[i]; containsVersion(doomed, h.Version) {
				_, thread := tenant.Split(h.Thread)
				threads = append(threads, thread)
			}
			if len(threads) == maxNamedUsers {
				return threads, true, nil
			}
		}
		if !checkpoint.IsPart(heads, threadsPerPage, (*checkpoint.Head).Size) {
			return threads, true, nil
		}
		q.Before = q.PositionOf(&heads[len(heads)-1])
	}
	return threads, false, nil
}
