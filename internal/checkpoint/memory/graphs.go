package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// graphs holds the graph definitions.
type graphs struct {
	mu         sync.Mutex
	list       []checkpoint.GraphRecord
	tombstones tombstones
	revision   uint64
}

// findVersion returns the position of a version, -1 = none. mu is held.
func (g *graphs) findVersion(name, version string) int {
	return slices.IndexFunc(g.list, func(r checkpoint.GraphRecord) bool { return r.Name == name && r.Version == version })
}

// listVersions lists the versions of a graph. mu is held.
func (g *graphs) listVersions(name string) (versions []string) {
	for i := range g.list {
		if g.list[i].Name == name {
			versions = append(versions, g.list[i].Version)
		}
	}
	return versions
}

// tombstones are the digests of deleted versions, those that were deleted first
// first.
type tombstones struct {
	max  int
	list []tombstone
}

type tombstone struct{ name, version, digest string }

// findVersion returns the position of a version, -1 = none.
func (t *tombstones) findVersion(name, version string) int {
	return slices.IndexFunc(t.list, func(one tombstone) bool { return one.name == name && one.version == version })
}

// addTombstone remembers a version, and forgets the oldest when there are too many.
func (t *tombstones) addTombstone(g *checkpoint.GraphRecord) {
	t.list = append(t.list, tombstone{g.Name, g.Version, checkpoint.GraphDigest(g.Source)})
	if more := len(t.list) - t.max; more > 0 {
		t.list = slices.Delete(t.list, 0, more)
	}
}

// PutGraph stores a version of a graph. It returns checkpoint.ErrGraphExists when the
// version has, or had, another source, and checkpoint.ErrVersionsChanged when the condition
// does not hold.
func (s *Store) PutGraph(ctx context.Context, g checkpoint.GraphRecord, condition checkpoint.GraphCondition) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	if i := s.graphs.findVersion(g.Name, g.Version); i >= 0 {
		if s.graphs.list[i].Source != g.Source {
			return checkpoint.ErrGraphExists
		}
		return nil
	}
	dead := &s.graphs.tombstones
	i := dead.findVersion(g.Name, g.Version)
	if i >= 0 && dead.list[i].digest != checkpoint.GraphDigest(g.Source) {
		return checkpoint.ErrGraphExists
	}
	if err := condition.CheckVersions(s.graphs.listVersions(g.Name)); err != nil {
		return err
	}
	if i >= 0 {
		dead.list = slices.Delete(dead.list, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(s.graphs.list, g, func(a, b checkpoint.GraphRecord) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	s.graphs.list = slices.Insert(s.graphs.list, at, g)
	s.graphs.revision++
	return nil
}

// DeleteGraph removes a version of a graph, and keeps its tombstone. It returns
// checkpoint.ErrGraphNotFound when there is no such version, and checkpoint.ErrVersionsChanged
// when the condition does not hold.
func (s *Store) DeleteGraph(ctx context.Context, name, version string, condition checkpoint.GraphCondition) error {
	if err := s.checkOpen(ctx); err != nil {
		return err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	i := s.graphs.findVersion(name, version)
	if i < 0 {
		return checkpoint.ErrGraphNotFound
	}
	if err := condition.CheckVersions(s.graphs.listVersions(name)); err != nil {
		return err
	}
	s.graphs.tombstones.addTombstone(&s.graphs.list[i])
	s.graphs.list = slices.Delete(s.graphs.list, i, i+1)
	s.graphs.revision++
	return nil
}

// GraphRecord returns a version of a graph. It returns checkpoint.ErrGraphNotFound when
// there is no such version.
func (s *Store) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	if err := s.checkOpen(ctx); err != nil {
		return checkpoint.GraphRecord{}, err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	i := s.graphs.findVersion(name, version)
	if i < 0 {
		return checkpoint.GraphRecord{}, checkpoint.ErrGraphNotFound
	}
	return s.graphs.list[i], nil
}

// GraphVersions lists every version of every graph without its source, oldest first, and
// returns the revision of the list. The list may be nil when known is the revision still.
func (s *Store) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, 0, err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	revision := s.graphs.revision + 1
	if known == revision {
		return nil, revision, nil
	}
	list := slices.Clone(s.graphs.list)
	for i := range list {
		list[i].Source = ""
	}
	return list, revision, nil
}

// GraphRecords lists every version of every graph, oldest first.
func (s *Store) GraphRecords(ctx context.Context) ([]checkpoint.GraphRecord, error) {
	if err := s.checkOpen(ctx); err != nil {
		return nil, err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	return slices.Clone(s.graphs.list), nil
}
