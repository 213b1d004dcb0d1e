package registry

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Refresh loads versions that other servers have stored, and drops those they have
// deleted. It does nothing without a store, and costs one small read when nothing
// has changed. The error is a *runtime.Error.
func (r *Registry) Refresh(ctx context.Context) error {
	if r.store == nil {
		return nil
	}
	_, err := r.readList(ctx, false)
	return err
}

// readVersions lists the versions of a graph that the store has, after it has loaded what
// other servers have changed.
func (r *Registry) readVersions(ctx context.Context, name string) (versions []string, err error) {
	if r.store == nil {
		return r.catalog.Load().findGraph(name).versionNames(), nil
	}
	records, err := r.readList(ctx, true)
	for i := range records {
		if records[i].Name == name {
			versions = append(versions, records[i].Version)
		}
	}
	return versions, err
}

// readList reads the store's list and makes a catalog of it. It returns the list when it
// has changed, or always.
func (r *Registry) readList(ctx context.Context, always bool) ([]checkpoint.GraphRecord, error) {
	r.refreshMu.Lock()
	defer r.refreshMu.Unlock()
	r.mu.Lock()
	known, puts := r.revision, r.putCount
	r.mu.Unlock()
	asked := known
	if always {
		asked = 0
	}
	records, revision, err := r.store.GraphVersions(ctx, asked)
	if err != nil {
		return nil, translateStoreError(err)
	}
	if revision == known {
		return records, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision = revision
	r.updateCatalog(records, puts, revision < known)
	return records, nil
}

// updateCatalog makes a catalog of the store's list. It keeps versions that this
// process has put since the read of the list, and all versions when the store has
// lost its own, because threads may need them. A version with another time than the
// known version was put after the deletion, and is read again. The caller holds mu.
func (r *Registry) updateCatalog(records []checkpoint.GraphRecord, puts uint64, lost bool) {
	old := *r.catalog.Load()
	lists, newest := make(map[string][]*graphVersion), make(map[string]*graphVersion)
	listed, replaced := make(map[versionID]bool, len(records)), false
	for name, v := range old.listAll() {
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
	if replaced { // compiled graphs may contain the replaced version
		r.dropAllCompiled(old)
	}
	for name, versions := range old.listAll() {
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

func (l *versionLoader) dropAllCompiled(all catalog) {
	for _, versions := range all.listAll() {
		for _, v := range versions.list {
			l.cache.removeVersion(v)
		}
	}
}
