// Package redis keeps threads in Redis or Valkey, for several servers that share
// a store.
//
// Threads are divided into partitions, whose number is fixed when a store is made.
// All keys of a partition lie in one slot of a cluster, so one script applies a
// change together with its index entries: nothing has to be put right later, and
// there is no second source of truth. Reads over all threads ask every partition
// and put the answers together.
//
// A change is one exchange with the server. Time is the server's.
//
// Store puts the packages below together, and lets no call begin after Close.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/graphs"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/pubsub"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/threads"
)

// Options configure a Store.
type Options = setup.Options

// Format is the number of the layout of keys and records that is written.
const Format = layout.Format

// Store implements checkpoint.Store and checkpoint.Graphs.
type Store struct {
	*Reader

	changes    *threads.Writer
	graphs     *graphs.Graphs
	subscriber *pubsub.Subscriber
	warnings   []string
}

var (
	_ checkpoint.Store         = (*Store)(nil)
	_ checkpoint.Graphs        = (*Store)(nil)
	_ checkpoint.Notifier      = (*Store)(nil)
	_ checkpoint.Membership    = (*Store)(nil)
	_ checkpoint.BoundedReader = (*Store)(nil)
	_ checkpoint.ThreadViewer  = (*Store)(nil)
	_ checkpoint.WriteChecker  = (*Store)(nil)
)

// Open connects to the server of opts.URL, checks that threads are safe on it and
// makes the store when there is none. It returns a *setup.Error, or an error that
// wraps checkpoint.ErrUnavailable.
func Open(ctx context.Context, opts Options) (*Store, error) {
	d, err := setup.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	s := &Store{
		Reader: newReader(d, opts), warnings: d.Warnings,
		graphs: graphs.New(d, cmp.Or(opts.Tombstones, checkpoint.DefaultTombstones)),
	}
	if err := s.graphs.ResealRecords(ctx); err != nil {
		return nil, errors.Join(d.WrapError(ctx, err), s.Close())
	}
	log := cmp.Or(opts.Logger, zap.NewNop())
	if err := s.indexMigrated(ctx, log); err != nil {
		return nil, errors.Join(d.WrapError(ctx, err), s.Close())
	}
	origin := setup.NewRandomID()[:pubsub.OriginLen]
	if err := pubsub.CheckAccess(ctx, d.Client, &d.Keys, origin); script.IsPermissionDenied(err) {
		s.warnings = append(s.warnings, "this user may not publish or subscribe, so servers can't tell each other what happens and look for it, "+
			"which takes longer: allow it with ACL SETUSER … &"+d.Prefix()+"* +@pubsub ("+err.Error()+")")
	}
	s.subscriber = pubsub.New(ctx, pubsub.Config{
		Client: d.Client, Keys: &d.Keys, Box: d.Box, Origin: origin, Membership: d.Scripts.Membership, Epoch: d.Epoch,
		Heartbeat: cmp.Or(opts.Heartbeat, 3*time.Second), Log: log,
	})
	s.changes = threads.NewWriter(d, s.threads, s.subscriber, origin)
	return s, nil
}

// indexMigrated gives the threads and the open interrupts of a store that was migrated their tags.
// Those whose keys are missing, or for which Redis has no memory, get them at a later start.
func (s *Store) indexMigrated(ctx context.Context, log *zap.Logger) error {
	isNeeded, err := s.database.HasUntagged(ctx)
	if err != nil || !isNeeded {
		return err
	}
	told := time.Now()
	tell := func(done int) {
		if time.Since(told) >= tagReportInterval {
			told = time.Now()
			log.Info("indexing the threads and open questions of a migrated store", zap.Int("done", done))
		}
	}
	unreadable, err := s.index.TagThreads(ctx, tell)
	if err == nil {
		var questions int
		questions, err = s.index.TagInterrupts(ctx, tell)
		unreadable += questions
	}
	switch {
	case script.IsOutOfMemory(err):
		s.warnings = append(s.warnings, "threads and open questions of a migrated store are missing in lists with a filter until the next start, since Redis has no memory to index them: "+err.Error())
		return nil
	case err != nil:
		return err
	case unreadable > 0:
		s.warnings = append(s.warnings, fmt.Sprintf("%d threads and open questions can't be read, and are missing in lists with a filter until a start with their keys", unreadable))
		return nil
	}
	return s.database.RemoveUntaggedMark(ctx)
}

// tagReportInterval is how often the progress of indexMigrated is logged.
const tagReportInterval = 5 * time.Second

// Subscribe opens a subscription to the signals of other servers. Signals that
// are sent through this store are not delivered.
func (s *Store) Subscribe(handleSignal func(checkpoint.Signal)) checkpoint.Subscription {
	return s.subscriber.Subscribe(handleSignal)
}

// Register adds a server to the membership.
func (s *Store) Register(server string, changed func()) checkpoint.Registration {
	return s.subscriber.Register(server, changed)
}

// Warnings returns warnings for operators about the server's settings, in
// sentences; none when all is well.
func (s *Store) Warnings() []string { return s.warnings }

// Close waits for the calls that are under way.
func (s *Store) Close() error {
	if s.subscriber != nil { // a store that could not be opened has none
		s.subscriber.Close()
	}
	return s.Reader.Close()
}

// Apply makes a change in one exchange with the server. An attempt whose answer
// was lost is repeated under its Op, which the server knows again; when another
// change has followed meanwhile, the outcome is unknown, and the error wraps
// ErrUnavailable, never ErrConflict.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	if err := c.Validate(); err != nil {
		return checkpoint.Receipt{}, err
	}
	done, err := s.beginCall(ctx)
	if err != nil {
		return checkpoint.Receipt{}, err
	}
	defer done()
	r, err := s.changes.ApplyChange(ctx, c)
	return r, wrapThreadError(c.Thread, script.ToContractError(ctx, err))
}

// CheckWritable looks whether this is still the store that was opened.
func (s *Store) CheckWritable(ctx context.Context) error {
	done, err := s.beginCall(ctx)
	if err != nil {
		return err
	}
	defer done()
	return script.ToContractError(ctx, s.database.CheckMarks(ctx))
}
