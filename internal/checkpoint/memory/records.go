package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// runs holds the runs of a thread by id and by Order. The slice holds pointers
// to records that are replaced, never changed.
type runs struct {
	byID    map[string]*checkpoint.Run
	inOrder []*checkpoint.Run
}

func (r *runs) put(list []checkpoint.Run) (revisions []uint64) {
	for i := range list {
		run := list[i]
		run.Revision = 1
		if old := r.byID[run.ID]; old != nil {
			run.Revision = old.Revision + 1
			at, _ := r.place(old)
			r.inOrder = slices.Delete(r.inOrder, at, at+1)
		}
		if r.byID == nil {
			r.byID = map[string]*checkpoint.Run{}
		}
		r.byID[run.ID] = &run
		at, _ := r.place(&run)
		r.inOrder = slices.Insert(r.inOrder, at, &run)
		revisions = append(revisions, run.Revision)
	}
	return revisions
}

func (r *runs) place(run *checkpoint.Run) (int, bool) {
	return slices.BinarySearchFunc(r.inOrder, run, func(a, b *checkpoint.Run) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), strings.Compare(a.ID, b.ID))
	})
}

// Head returns the thread's head.
func (s *Store) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Head{}, err
	}
	t := s.locked(thread)
	if t == nil {
		return checkpoint.Head{}, checkpoint.ErrThreadNotFound
	}
	defer t.mu.Unlock()
	return t.readHead(s), nil
}

func (t *thread) readHead(s *Store) checkpoint.Head {
	h := t.head
	h.Queue = slices.Clone(h.Queue)
	h.Now = s.clock()
	return h
}

// Run returns one run of a thread.
func (s *Store) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Run{}, err
	}
	if t := s.locked(thread); t != nil {
		defer t.mu.Unlock()
		if r := t.runs.byID[run]; r != nil {
			return *r, nil
		}
	}
	return checkpoint.Run{}, checkpoint.ErrRunNotFound
}

// Runs lists a thread's runs, newest first.
func (s *Store) Runs(
	ctx context.Context, thread string, before uint64, limit int,
) ([]checkpoint.Run, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	t := s.locked(thread)
	if t == nil {
		return nil, nil
	}
	defer t.mu.Unlock()
	var out []checkpoint.Run
	for _, r := range slices.Backward(t.runs.inOrder) {
		if before > 0 && r.Order >= before {
			continue
		}
		if limit > 0 && len(out) == limit {
			break
		}
		out = append(out, *r)
	}
	return out, nil
}

// Interrupt returns one question of a thread.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Interrupt{}, err
	}
	if t := s.locked(thread); t != nil {
		defer t.mu.Unlock()
		if q := t.questions[id]; q != nil {
			return *q.record.Load(), nil
		}
	}
	return checkpoint.Interrupt{}, checkpoint.ErrInterruptNotFound
}

// Request returns a remembered request of a thread.
func (s *Store) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.Request{}, err
	}
	if t := s.locked(thread); t != nil {
		defer t.mu.Unlock()
		if r, ok := t.requests[id]; ok {
			return r, nil
		}
	}
	return checkpoint.Request{}, checkpoint.ErrRequestNotFound
}

// graphs holds the graph definitions.
type graphs struct {
	mu       sync.Mutex
	list     []checkpoint.GraphRecord
	deleted  map[[2]string]string // digests, by name and version
	revision uint64
}

// find returns the position of a version, -1 = none. mu is held.
func (g *graphs) find(name, version string) int {
	return slices.IndexFunc(g.list, func(r checkpoint.GraphRecord) bool { return r.Name == name && r.Version == version })
}

// PutGraph keeps a version of a graph.
func (s *Store) PutGraph(ctx context.Context, g checkpoint.GraphRecord) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	if i := s.graphs.find(g.Name, g.Version); i >= 0 {
		if s.graphs.list[i].Source != g.Source {
			return checkpoint.ErrGraphExists
		}
		return nil
	}
	id := [2]string{g.Name, g.Version}
	if digest, deleted := s.graphs.deleted[id]; deleted && digest != checkpoint.GraphDigest(g.Source) {
		return checkpoint.ErrGraphExists
	}
	delete(s.graphs.deleted, id)
	at, _ := slices.BinarySearchFunc(s.graphs.list, g, func(a, b checkpoint.GraphRecord) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	s.graphs.list = slices.Insert(s.graphs.list, at, g)
	s.graphs.revision++
	return nil
}

// DeleteGraph removes a version of a graph.
func (s *Store) DeleteGraph(ctx context.Context, name, version string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	i := s.graphs.find(name, version)
	if i < 0 {
		return checkpoint.ErrGraphNotFound
	}
	if s.graphs.deleted == nil {
		s.graphs.deleted = make(map[[2]string]string)
	}
	s.graphs.deleted[[2]string{name, version}] = checkpoint.GraphDigest(s.graphs.list[i].Source)
	s.graphs.list = slices.Delete(s.graphs.list, i, i+1)
	s.graphs.revision++
	return nil
}

// GraphRecord returns a version of a graph.
func (s *Store) GraphRecord(ctx context.Context, name, version string) (checkpoint.GraphRecord, error) {
	if err := s.ready(ctx); err != nil {
		return checkpoint.GraphRecord{}, err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	i := s.graphs.find(name, version)
	if i < 0 {
		return checkpoint.GraphRecord{}, checkpoint.ErrGraphNotFound
	}
	return s.graphs.list[i], nil
}

// GraphVersions lists every version of every graph without its source.
func (s *Store) GraphVersions(ctx context.Context, known uint64) ([]checkpoint.GraphRecord, uint64, error) {
	if err := s.ready(ctx); err != nil {
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
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	s.graphs.mu.Lock()
	defer s.graphs.mu.Unlock()
	return slices.Clone(s.graphs.list), nil
}
