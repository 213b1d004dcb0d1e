// Package memory keeps threads in the memory of the process. It is the executable
// meaning of the checkpoint contract, and the store of tests and throw-away
// servers.
//
// Each thread has a lock of its own and nothing on the way of a commit depends
// on how many threads there are or how long their history is.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/tenant"
)

const shardCount = 64

// Options configure a Store.
type Options struct {
	// Now is the clock that leases are compared with; nil = time.Now.
	Now func() time.Time
	// Tombstones is how many deleted versions of graphs are remembered; default
	// checkpoint.DefaultTombstones.
	Tombstones int
}

// Store implements checkpoint.Store and checkpoint.Graphs.
type Store struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [shardCount]shard
	closed atomic.Bool

	dueQueue   dueQueue
	interrupts interruptIndex
	threads    threadIndex
	graphs     graphs

	secrets secrets
}

// A shard has the threads of some ids, by tenant and id: a list of one tenant looks at no
// thread of another.
type shard struct {
	mu      sync.RWMutex
	tenants map[string]map[string]*thread
}

func (s *shard) addThread(id string, t *thread) {
	owner, _ := tenant.Split(id)
	if s.tenants[owner] == nil {
		s.tenants[owner] = map[string]*thread{}
	}
	s.tenants[owner][id] = t
}

func (s *shard) findThread(id string) *thread {
	owner, _ := tenant.Split(id)
	return s.tenants[owner][id]
}

func (s *shard) removeThread(id string) {
	owner, _ := tenant.Split(id)
	delete(s.tenants[owner], id)
	if len(s.tenants[owner]) == 0 {
		delete(s.tenants, owner)
	}
}

var (
	_ checkpoint.Store     = (*Store)(nil)
	_ checkpoint.Graphs    = (*Store)(nil)
	_ checkpoint.Immediate = (*Store)(nil)
)

// TimeBounded says that a change does not wait.
func (*Store) TimeBounded() {}

// Immediate says that no call waits.
func (*Store) Immediate() {}

// New returns an empty store.
func New(opts Options) *Store {
	s := &Store{now: opts.Now, seed: maphash.MakeSeed()}
	if s.now == nil {
		s.now = time.Now
	}
	s.graphs.tombstones.max = cmp.Or(opts.Tombstones, checkpoint.DefaultTombstones)
	for i := range s.shards {
		s.shards[i].tenants = map[string]map[string]*thread{}
	}
	return s
}

// Close makes later calls fail with checkpoint.ErrUnavailable.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// checkOpen is the check every call begins with.
func (s *Store) checkOpen(ctx context.Context) error {
	if s.closed.Load() {
		return fmt.Errorf("%w: store is closed", checkpoint.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
	return nil
}

// currentTime returns the store's present without a monotonic part, so that times
// compare the same before and after they are stored elsewhere.
func (s *Store) currentTime() time.Time { return s.now().Round(0).UTC() }

func (s *Store) shardOf(id string) *shard {
	return &s.shards[maphash.String(s.seed, id)%shardCount]
}

func (s *Store) findThread(id string) *thread {
	sh := s.shardOf(id)
	sh.mu.RLock()
	t := sh.findThread(id)
	sh.mu.RUnlock()
	return t
}

// lockThread returns the thread with its lock held, or nil when there is none.
func (s *Store) lockThread(id string) *thread {
	t := s.findThread(id)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	if t.isDeleted {
		t.mu.Unlock()
		return nil
	}
	return t
}
