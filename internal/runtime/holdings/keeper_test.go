package holdings_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/holdings"
)

// fakeStore has numbers of threads and questions, and heads of threads with queues.
type fakeStore struct {
	mu               sync.Mutex
	threads, open    map[string]int
	queues           map[string]int // by thread
	counts, heads    int            // calls
	mostAsked        int            // the greatest number of records that was asked for
	countTime        time.Duration
	countErr, headsE error
}

func newFakeStore() *fakeStore {
	return &fakeStore{threads: map[string]int{}, open: map[string]int{}, queues: map[string]int{}}
}

func (s *fakeStore) count(ctx context.Context, of map[string]int, tenant string, atMost int) (int, error) {
	s.mu.Lock()
	s.counts++
	s.mostAsked = max(s.mostAsked, atMost)
	n, err, wait := min(of[tenant], atMost), s.countErr, s.countTime
	s.mu.Unlock()
	if wait > 0 {
		_ = backoff.Sleep(ctx, wait)
	}
	return n, err
}

func (s *fakeStore) CountThreads(ctx context.Context, tenant string, atMost int) (int, error) {
	return s.count(ctx, s.threads, tenant, atMost)
}

func (s *fakeStore) CountOpenInterrupts(ctx context.Context, tenant string, atMost int) (int, error) {
	return s.count(ctx, s.open, tenant, atMost)
}

func (s *fakeStore) makeHead(thread string) checkpoint.Head {
	return checkpoint.Head{Thread: thread, Queue: make([]string, s.queues[thread])}
}

func (s *fakeStore) Head(_ context.Context, thread string) (checkpoint.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heads++
	if _, ok := s.queues[thread]; !ok {
		return checkpoint.Head{}, checkpoint.ErrThreadNotFound
	}
	return s.makeHead(thread), nil
}

// Threads lists two threads at a time.
func (s *fakeStore) Threads(_ context.Context, q checkpoint.ThreadQuery) (list []checkpoint.Head, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.headsE != nil {
		return nil, s.headsE
	}
	for n := range 100 {
		thread := fmt.Sprintf("%s@%02d", q.Tenant, n)
		if _, ok := s.queues[thread]; ok && thread > q.Before.Thread && len(list) < 2 {
			list = append(list, s.makeHead(thread))
		}
	}
	return list, nil
}

type fakeLimits map[runtime.Holding]int64

func (l fakeLimits) FindTenantLimit(tenant string, of runtime.Holding) int64 {
	if most, ok := l[of]; ok && tenant != "free" {
		return most
	}
	return runtime.NoTenantLimit
}

// newKeeper makes a keeper whose background work is done by the test.
func newKeeper(s *fakeStore, limits runtime.TenantLimits) (k *holdings.Keeper, background func()) {
	began := time.Now()
	var work []func(context.Context)
	k = holdings.New(holdings.Options{
		Limits: limits, Store: s, Uptime: func() time.Duration { return time.Since(began) },
		RunBackground: func(f func(context.Context)) { work = append(work, f) },
	})
	return k, func() {
		for _, f := range work {
			f(context.Background())
		}
		work = nil
	}
}

func requireFull(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonQuotaExceeded})
}

func sleep(d time.Duration) { _ = backoff.Sleep(context.Background(), d) }

func TestWithoutLimitsNothingIsCounted(t *testing.T) {
	s := newFakeStore()
	for name, limits := range map[string]runtime.TenantLimits{"no limits": nil, "a tenant without": fakeLimits{runtime.HoldingThreads: 0}} {
		k, _ := newKeeper(s, limits)
		done, err := k.AddThread(t.Context(), "free@t")
		require.NoError(t, err, name)
		done(true)
		require.NoError(t, k.CheckQuestions(t.Context(), "free@t"), name)
		queued, err := k.AddQueuedRun(t.Context(), "free@t")
		require.NoError(t, err, name)
		k.NoteCommitted("free@t", 1, []checkpoint.Event{{Kind: checkpoint.EventInterrupt, Interrupts: make([]checkpoint.Interrupt, 1)}})
		queued()
		k.NoteRemoved("free@t")
		require.Zero(t, testing.AllocsPerRun(10, func() {
			done, _ := k.AddThread(t.Context(), "free@t")
			done(true)
			_ = k.CheckQuestions(t.Context(), "free@t")
			k.NoteCommitted("free@t", 1, nil)
		}), name)
	}
	require.Zero(t, s.counts+s.heads)
}

func TestThreadsAreCountedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingThreads: 5})
		add := func(isMade bool) error {
			done, err := k.AddThread(t.Context(), "acme@t")
			if err == nil {
				done(isMade)
			}
			return err
		}
		s.threads["acme"] = 2
		for range 10 {
			require.NoError(t, add(false), "what was not made does not count")
		}
		require.NoError(t, add(true))
		require.Equal(t, 1, s.counts)
		s.threads["acme"] = 40 // others have made some
		require.NoError(t, add(true))
		require.Equal(t, 1, s.counts)
		sleep(time.Second)
		requireFull(t, add(true))
		require.Equal(t, 2, s.counts)
		require.Equal(t, 5, s.mostAsked, "no more is looked at than the limit needs")

		s.threads["acme"] = 3
		requireFull(t, add(true)) // it was counted just now
		require.Equal(t, 2, s.counts)
		sleep(100 * time.Millisecond)
		require.NoError(t, add(true))
		require.NoError(t, add(true))
		requireFull(t, add(true))
		require.Equal(t, 3, s.counts)
		s.threads["acme"] = 4
		k.NoteRemoved("acme@t")
		require.NoError(t, add(true), "what was removed makes room at once")
		require.Equal(t, 4, s.counts)

		s.countErr = fmt.Errorf("%w: broken", checkpoint.ErrUnavailable)
		sleep(time.Second)
		require.ErrorIs(t, add(true), &runtime.Error{Reason: runtime.ReasonStoreUnavailable})
		s.countErr, s.threads["acme"] = nil, 0
		require.NoError(t, add(true))
	})
}

// A thread that is about to be made counts, also while the store counts.
func TestThreadsThatAreAboutToBeMadeCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingThreads: 2})
		first, err := k.AddThread(t.Context(), "acme@1")
		require.NoError(t, err)
		_, err = k.AddThread(t.Context(), "acme@2")
		require.NoError(t, err)
		sleep(2 * time.Second) // and neither is in the store
		_, err = k.AddThread(t.Context(), "acme@3")
		requireFull(t, err)
		first(false)
		_, err = k.AddThread(t.Context(), "acme@3")
		require.NoError(t, err)
	})
}

// Calls that come while the store counts wait for that count, and a store that counts for
// long does it seldom.
func TestSlowCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.countTime, s.threads["acme"] = time.Second, 1
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingThreads: 1})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := k.AddThread(t.Context(), "acme@t")
				requireFull(t, err)
			})
		}
		all.Wait()
		require.Equal(t, 1, s.counts)
		for range 80 {
			k.NoteRemoved("acme@u")
			_, err := k.AddThread(t.Context(), "acme@t")
			requireFull(t, err)
			sleep(100 * time.Millisecond)
		}
		require.Equal(t, 1, s.counts)
		sleep(time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the caller is gone")
		go func() {
			_, err := k.AddThread(t.Context(), "acme@t") // it counts
			requireFull(t, err)
		}()
		synctest.Wait()
		cancel(gone)
		_, err := k.AddThread(ctx, "acme@t")
		require.ErrorIs(t, err, gone)
		require.Equal(t, 2, s.counts)
	})
}

func TestQuestionsFollowChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.open["acme"] = 1
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingOpenQuestions: 3})
		note := func(kind checkpoint.EventKind, n int) {
			k.NoteCommitted("acme@t", 0, []checkpoint.Event{{Kind: checkpoint.EventRunState}, {Kind: kind, Interrupts: make([]checkpoint.Interrupt, n)}})
		}
		check := func() error { return k.CheckQuestions(t.Context(), "acme@t") }
		note(checkpoint.EventInterrupt, 9) // nothing is counted yet
		for range 9 {
			require.NoError(t, check(), "a check takes nothing")
		}
		note(checkpoint.EventInterrupt, 2)
		s.open["acme"] = 3
		requireFull(t, check())
		note(checkpoint.EventResolved, 1)
		require.NoError(t, check())
		require.Equal(t, 1, s.counts)

		s.open["acme"] = 7
		sleep(time.Second)
		requireFull(t, check())
		note(checkpoint.EventResolved, 1) // of more than the store has said
		s.open["acme"] = 6
		requireFull(t, check())
		note(checkpoint.EventResolved, 4)
		s.open["acme"] = 2
		require.NoError(t, check())
	})
}

// A question that is resolved while the store counts may be missing from the count already.
func TestACountIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.countTime = time.Second
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingOpenQuestions: 1})
		checked := make(chan error, 1)
		go func() { checked <- k.CheckQuestions(t.Context(), "acme@t") }()
		synctest.Wait()
		k.NoteCommitted("acme@t", 0, []checkpoint.Event{{Kind: checkpoint.EventResolved, Interrupts: make([]checkpoint.Interrupt, 1)}})
		require.NoError(t, <-checked)
		require.Equal(t, []runtime.TenantHolding{{Tenant: "acme", Of: runtime.HoldingOpenQuestions, Most: 1}}, k.ListTenants())
	})
}

func TestQueuedRunsAreCountedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		for n, queued := range []int{3, 0, 1, 2, 0, 1} {
			s.queues[fmt.Sprintf("acme@%02d", n)] = queued
		}
		k, background := newKeeper(s, fakeLimits{runtime.HoldingQueuedRuns: 9})
		sleep(time.Second)
		enqueue := func(thread string) error {
			done, err := k.AddQueuedRun(t.Context(), thread)
			if err == nil {
				s.queues[thread]++
				k.NoteCommitted(thread, s.queues[thread], nil)
				done()
			}
			return err
		}
		s.headsE = fmt.Errorf("%w: broken", checkpoint.ErrUnavailable)
		require.NoError(t, enqueue("acme@00"))
		background() // the list fails
		require.NoError(t, enqueue("acme@01"))
		s.headsE = nil
		background()
		requireFull(t, enqueue("acme@02")) // 4, 1, 1, 2, 0, 1
		require.Equal(t, 5, s.heads)
		requireFull(t, enqueue("acme@02"))
		require.Equal(t, 5, s.heads, "they were looked at just before")

		s.queues["acme@03"] = 0 // another server has begun them
		delete(s.queues, "acme@05")
		sleep(time.Second)
		for range 3 {
			require.NoError(t, enqueue("acme@02"))
		}
		requireFull(t, enqueue("acme@02"))
		k.NoteRemoved("acme@02")
		require.NoError(t, enqueue("acme@06"))

		done, err := k.AddQueuedRun(t.Context(), "acme@07")
		require.NoError(t, err)
		done() // it was not stored
		require.NoError(t, enqueue("acme@06"))
	})
}

// Many tenants that come and go leave few counts behind.
func TestManyTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingThreads: 2})
		for round := range 3 {
			for n := range 5000 {
				done, err := k.AddThread(t.Context(), fmt.Sprintf("tenant%d-%d@t", round, n))
				require.NoError(t, err)
				done(true)
			}
			sleep(2 * time.Second)
		}
		require.LessOrEqual(t, holdings.CountTallies(k), 10_000)
	})
}
