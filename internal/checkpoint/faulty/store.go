// Package faulty breaks a store on purpose, always at the same place, so that a
// crash at every call can be tried in turn.
package faulty

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// ErrInjected is the cause of every failure that was planned. The errors of a
// Store wrap it and checkpoint.ErrUnavailable.
var ErrInjected = errors.New("injected fault")

// FaultMode is the effect on a call that is hit.
type FaultMode int

// Effects of faults.
const (
	FailBefore  FaultMode = iota // the call fails and does nothing
	FailAfter                    // the call is made, but its answer is lost
	HangForever                  // nothing comes back until the caller's context ends
)

// Method names a method of checkpoint.Store.
type Method string

// Methods that may be counted.
const (
	Head        Method = "Head"
	Apply       Method = "Apply"
	Checkpoint  Method = "Checkpoint"
	Checkpoints Method = "Checkpoints"
	Pending     Method = "Pending"
	Events      Method = "Events"
	Run         Method = "Run"
	Runs        Method = "Runs"
	Interrupt   Method = "Interrupt"
	Request     Method = "Request"
	Threads     Method = "Threads"
	Interrupts  Method = "Interrupts"
	Due         Method = "Due"

	CountThreads        Method = "CountThreads"
	CountOpenInterrupts Method = "CountOpenInterrupts"
	CountTags           Method = "CountTags"
	SkipThreads         Method = "SkipThreads"
	CountSelected       Method = "CountSelectedThreads"
	LatestChange        Method = "LatestChange"
)

// Plan says which calls are hit. The zero Plan hits none and only counts.
type Plan struct {
	At   int // number of the first call that is hit, from 1; 0 = none
	For  int // how many in a row are hit; 0 = one, negative = all that follow
	Mode FaultMode
	// Only counts calls of these methods; empty = of all.
	Only []Method
}

// Store passes calls on, save those that its Plan breaks.
type Store struct {
	store checkpoint.Store

	mu    sync.Mutex
	plan  Plan
	calls []Method
	hits  int
}

var _ checkpoint.Store = (*Store)(nil)

// New returns a Store that breaks calls to store as the plan says.
func New(store checkpoint.Store, plan Plan) *Store {
	return &Store{store: store, plan: plan}
}

// Calls returns the calls that were counted so far, in order.
func (s *Store) Calls() []Method {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Hits returns how many calls were broken so far.
func (s *Store) Hits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits
}

// StopFaults lets every later call pass.
func (s *Store) StopFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan.At = 0
}

// countCall counts a call and returns its number, and whether the plan is to break it.
func (s *Store) countCall(m Method) (n int, how FaultMode, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.plan.Only) > 0 && !slices.Contains(s.plan.Only, m) {
		return 0, 0, false
	}
	s.calls = append(s.calls, m)
	n = len(s.calls)
	length := max(s.plan.For, 1)
	broken = s.plan.At > 0 && n >= s.plan.At && (s.plan.For < 0 || n < s.plan.At+length)
	if broken {
		s.hits++
	}
	return n, s.plan.Mode, broken
}

// callWithFaults makes a call under the plan.
func callWithFaults[T any](ctx context.Context, s *Store, m Method, do func() (T, error)) (T, error) {
	n, how, broken := s.countCall(m)
	if !broken {
		return do()
	}
	var none T
	fault := fmt.Errorf("%w: %w: call %d, %s", checkpoint.ErrUnavailable, ErrInjected, n, m)
	switch how {
	case FailBefore:
	case FailAfter:
		if _, err := do(); err != nil {
			return none, err
		}
	case HangForever:
		<-ctx.Done()
		return none, fmt.Errorf("%w: %w", fault, ctx.Err())
	}
	return none, fault
}

// Head passes on or breaks the call.
func (s *Store) Head(ctx context.Context, thread string) (checkpoint.Head, error) {
	return callWithFaults(ctx, s, Head, func() (checkpoint.Head, error) { return s.store.Head(ctx, thread) })
}

// Apply passes on or breaks the call.
func (s *Store) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	return callWithFaults(ctx, s, Apply, func() (checkpoint.Receipt, error) { return s.store.Apply(ctx, c) })
}

// Checkpoint passes on or breaks the call.
func (s *Store) Checkpoint(ctx context.Context, thread, namespace, id string) (*checkpoint.Checkpoint, error) {
	return callWithFaults(ctx, s, Checkpoint, func() (*checkpoint.Checkpoint, error) {
		return s.store.Checkpoint(ctx, thread, namespace, id)
	})
}

// CheckpointWithin passes on or breaks the call.
func (s *Store) CheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error) {
	return callWithFaults(ctx, s, Checkpoint, func() (*checkpoint.Checkpoint, error) {
		if r, ok := s.store.(checkpoint.BoundedReader); ok {
			return r.CheckpointWithin(ctx, thread, namespace, id, most)
		}
		return s.store.Checkpoint(ctx, thread, namespace, id)
	})
}

// Checkpoints passes on or breaks the call.
func (s *Store) Checkpoints(ctx context.Context, q checkpoint.CheckpointQuery) ([]*checkpoint.Checkpoint, error) {
	return callWithFaults(ctx, s, Checkpoints, func() ([]*checkpoint.Checkpoint, error) { return s.store.Checkpoints(ctx, q) })
}

// Pending passes on or breaks the call.
func (s *Store) Pending(ctx context.Context, thread, id string) (checkpoint.Pending, error) {
	return callWithFaults(ctx, s, Pending, func() (checkpoint.Pending, error) { return s.store.Pending(ctx, thread, id) })
}

// PendingWithin passes on or breaks the call.
func (s *Store) PendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error) {
	return callWithFaults(ctx, s, Pending, func() (checkpoint.Pending, error) {
		if r, ok := s.store.(checkpoint.BoundedReader); ok {
			return r.PendingWithin(ctx, thread, id, most)
		}
		return s.store.Pending(ctx, thread, id)
	})
}

// Events passes on or breaks the call.
func (s *Store) Events(ctx context.Context, thread string, after uint64, limit int) ([]checkpoint.Event, error) {
	return callWithFaults(ctx, s, Events, func() ([]checkpoint.Event, error) { return s.store.Events(ctx, thread, after, limit) })
}

// Run passes on or breaks the call.
func (s *Store) Run(ctx context.Context, thread, run string) (checkpoint.Run, error) {
	return callWithFaults(ctx, s, Run, func() (checkpoint.Run, error) { return s.store.Run(ctx, thread, run) })
}

// Runs passes on or breaks the call.
func (s *Store) Runs(ctx context.Context, thread string, before uint64, limit int) ([]checkpoint.Run, error) {
	return callWithFaults(ctx, s, Runs, func() ([]checkpoint.Run, error) { return s.store.Runs(ctx, thread, before, limit) })
}

// Interrupt passes on or breaks the call.
func (s *Store) Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error) {
	return callWithFaults(ctx, s, Interrupt, func() (checkpoint.Interrupt, error) { return s.store.Interrupt(ctx, thread, id) })
}

// Request passes on or breaks the call.
func (s *Store) Request(ctx context.Context, thread, id string) (checkpoint.Request, error) {
	return callWithFaults(ctx, s, Request, func() (checkpoint.Request, error) { return s.store.Request(ctx, thread, id) })
}

// Threads passes on or breaks the call.
func (s *Store) Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error) {
	return callWithFaults(ctx, s, Threads, func() ([]checkpoint.Head, error) { return s.store.Threads(ctx, q) })
}

// Interrupts passes on or breaks the call.
func (s *Store) Interrupts(ctx context.Context, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
	return callWithFaults(ctx, s, Interrupts, func() ([]checkpoint.Interrupt, error) { return s.store.Interrupts(ctx, q) })
}

// CountThreads passes on or breaks the call.
func (s *Store) CountThreads(ctx context.Context, tenant string, atMost int) (int, error) {
	return callWithFaults(ctx, s, CountThreads, func() (int, error) { return s.store.CountThreads(ctx, tenant, atMost) })
}

// CountOpenInterrupts passes on or breaks the call.
func (s *Store) CountOpenInterrupts(ctx context.Context, tenant string, atMost int) (int, error) {
	return callWithFaults(ctx, s, CountOpenInterrupts, func() (int, error) { return s.store.CountOpenInterrupts(ctx, tenant, atMost) })
}

// SkipThreads passes on or breaks the call.
func (s *Store) SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (checkpoint.ThreadPosition, error) {
	return callWithFaults(ctx, s, SkipThreads, func() (checkpoint.ThreadPosition, error) { return s.store.SkipThreads(ctx, q, n) })
}

// CountSelectedThreads passes on or breaks the call.
func (s *Store) CountSelectedThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (int, error) {
	return callWithFaults(ctx, s, CountSelected, func() (int, error) { return s.store.CountSelectedThreads(ctx, q, atMost) })
}

// LatestChange passes on or breaks the call.
func (s *Store) LatestChange(ctx context.Context) (uint64, error) {
	return callWithFaults(ctx, s, LatestChange, func() (uint64, error) { return s.store.LatestChange(ctx) })
}

// CountTags passes on or breaks the call.
func (s *Store) CountTags(ctx context.Context, tenant string, tags []string) ([]int, error) {
	return callWithFaults(ctx, s, CountTags, func() ([]int, error) { return s.store.CountTags(ctx, tenant, tags) })
}

// Due passes on or breaks the call.
func (s *Store) Due(ctx context.Context, limit int) ([]string, time.Time, error) {
	var next time.Time
	threads, err := callWithFaults(ctx, s, Due, func() (threads []string, err error) {
		threads, next, err = s.store.Due(ctx, limit)
		return threads, err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return threads, next, nil
}

// Close closes the store; it is never broken nor counted.
func (s *Store) Close() error { return s.store.Close() }
