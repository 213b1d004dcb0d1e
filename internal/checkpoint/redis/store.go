// Package redis keeps threads in Redis or Valkey, for servers of which several
// share one store.
//
// Threads are divided into partitions, whose number is fixed when a store is made.
// All keys of a partition lie in one slot of a cluster, so one script applies a
// change together with what the indexes say of it: nothing has to be put right
// later, and there is no second source of truth. Reads over all threads ask every
// partition and put the answers together.
//
// A change is one exchange with the server. Time is the server's.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/pubsub"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Store implements checkpoint.Store and checkpoint.Graphs.
type Store struct {
	client     goredis.UniversalClient
	scripts    *script.Set
	runner     *script.Runner
	keys       layout.Keys
	warnings   []string
	origin     string // distinguishes the messages of this store from those of others
	subscriber *pubsub.Subscriber
	box        *seal.Box
	batchers   script.Batchers
	log        *zap.Logger
	epoch      string // says which store it is
	// maxTombstones is how many deleted versions of graphs are remembered.
	maxTombstones int
	mark          string // what each partition says of that, see store_mark.go

	checkMu         sync.Mutex       // guards the state of CheckWritable
	wrongPartitions map[int]struct{} // partitions that are of another store
	nextPartition   int              // partition to look at

	closeMu sync.RWMutex // held for reading by every call
	closed  bool
}

var (
	_ checkpoint.Store      = (*Store)(nil)
	_ checkpoint.Graphs     = (*Store)(nil)
	_ checkpoint.Notifier   = (*Store)(nil)
	_ checkpoint.Membership = (*Store)(nil)
)

// Open connects to the server of opts.URL, checks that threads are safe on it
// and makes the store when there is none. It fails with a SetupError that says
// what is wrong, or with an error that wraps checkpoint.ErrUnavailable.
func Open(ctx context.Context, opts Options) (*Store, error) {
	where, err := parseURL(opts)
	if err != nil {
		return nil, err
	}
	box, err := seal.New(opts.Seal)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	scripts, err := script.Load()
	if err != nil {
		return nil, err
	}
	s := &Store{
		scripts: scripts, box: box, log: cmp.Or(opts.Logger, zap.NewNop()),
		origin: newRandomID()[:pubsub.OriginLen], wrongPartitions: map[int]struct{}{},
		maxTombstones: cmp.Or(opts.Tombstones, checkpoint.DefaultTombstones),
	}
	if err := s.openStore(ctx, where); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.subscriber = pubsub.New(ctx, pubsub.Config{
		Client: s.client, Keys: &s.keys, Box: s.box, Origin: s.origin, Membership: s.scripts.Membership, Epoch: s.epoch,
		Heartbeat: cmp.Or(opts.Heartbeat, 3*time.Second), Log: s.log,
	})
	return s, nil
}

// newRandomID makes a unique name: 32 hexadecimal digits.
func newRandomID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// Subscribe opens a subscription to the signals of other servers. Signals that
// are sent through this store are not delivered.
func (s *Store) Subscribe(handleSignal func(checkpoint.Signal)) checkpoint.Subscription {
	return s.subscriber.Subscribe(handleSignal)
}

// Register adds a server to the membership.
func (s *Store) Register(server string, changed func()) checkpoint.Registration {
	return s.subscriber.Register(server, changed)
}

// Warnings tells what an operator should know of the server's settings, in
// sentences; none when all is well.
func (s *Store) Warnings() []string { return s.warnings }

// Close waits for the calls that are under way.
func (s *Store) Close() error {
	if s.subscriber != nil { // a store that could not be opened has none
		s.subscriber.Close()
	}
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed || s.client == nil {
		s.closed = true
		return nil
	}
	s.closed = true
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// beginCall begins a call; done ends it.
func (s *Store) beginCall(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
	s.closeMu.RLock()
	if s.closed {
		s.closeMu.RUnlock()
		return nil, fmt.Errorf("%w: store is closed", checkpoint.ErrUnavailable)
	}
	return s.closeMu.RUnlock, nil
}

// readThread makes a call that reads of one thread.
func (s *Store) readThread(ctx context.Context, thread string, call func() error) error {
	done, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return wrapThreadError(thread, script.ToContractError(ctx, call()))
}

// wrapThreadError adds the thread to an error of its records or of the store.
func wrapThreadError(thread string, err error) error {
	if errors.Is(err, checkpoint.ErrCorrupt) || errors.Is(err, checkpoint.ErrUnavailable) {
		return fmt.Errorf("thread %q: %w", thread, err)
	}
	return err
}

// allPartitions lists the partitions.
func (s *Store) allPartitions() []int {
	out := make([]int, s.keys.PartitionCount())
	for i := range out {
		out[i] = i
	}
	return out
}
