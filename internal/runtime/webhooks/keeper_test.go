package webhooks_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/webhooks"
)

// fakeSender records what it sends, and answers with the errors of the test in turn.
type fakeSender struct {
	mu     sync.Mutex
	stops  []runtime.RunStop
	errs   []error // of the attempts; nil after the last
	inside func()  // called in each attempt
}

func (f *fakeSender) SendRunStop(_ context.Context, s *runtime.RunStop) error {
	f.mu.Lock()
	f.stops = append(f.stops, *s)
	n := len(f.stops)
	f.mu.Unlock()
	if f.inside != nil {
		f.inside()
	}
	if n <= len(f.errs) {
		return f.errs[n-1]
	}
	return nil
}

func (f *fakeSender) CheckURL(field, url string) error {
	if url == "" {
		return runtime.Errorf(runtime.ReasonInvalidField, "no URL").With("field", field)
	}
	return nil
}

func (f *fakeSender) sent() []runtime.RunStop {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]runtime.RunStop{}, f.stops...)
}

// server is a server that shares a store with others.
type server struct {
	*webhooks.Keeper

	t     *testing.T
	store checkpoint.Store
	tasks sync.WaitGroup // in the background
}

func newServer(t *testing.T, store checkpoint.Store, sender runtime.RunStopSender) *server {
	t.Helper()
	s := &server{t: t, store: store}
	client := commit.NewStoreClient(store, 3, 5*time.Second, time.Now)
	committer := commit.NewCommitter(commit.Options{
		Store: client, Owner: rand.Text(), Attempts: 3, Timeout: 5 * time.Second, Now: client.CurrentTime, Observer: runtime.NopObserver{},
		PruneTime: func(*checkpoint.Head) time.Time { return time.Time{} }, Unknown: func(string) {},
		Committed: func(*commit.Tx, checkpoint.Head) {}, Published: func(string, []checkpoint.Event) {},
	})
	s.Keeper = webhooks.New(webhooks.Options{
		Store: client, Committer: committer, Limit: 3, WakeScheduler: func() {}, Logger: zap.NewNop(),
		RunUntilDrain: func(f func(context.Context)) { s.tasks.Go(func() { f(context.WithoutCancel(t.Context())) }) },
	})
	if sender != nil {
		s.SetSender(sender)
	}
	return s
}

const hookThread = "~run-webhooks:default@t1/w1"

func newWebhook(id string) runtime.RunWebhook {
	return runtime.RunWebhook{Thread: "t1", Run: "r1", ID: id, URL: "https://example.com/secret"}
}

// putRun stores the run r1 of the thread t1 in a state.
func putRun(t *testing.T, store checkpoint.Store, state checkpoint.RunState, lastEvent uint64) *checkpoint.Run {
	t.Helper()
	head, err := store.Head(t.Context(), "t1")
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		head = checkpoint.Head{Thread: "t1", LogID: "log", State: checkpoint.ThreadIdle}
	} else {
		require.NoError(t, err)
	}
	run := checkpoint.Run{ID: "r1", Thread: "t1", State: state, LastEvent: lastEvent}
	_, err = store.Apply(t.Context(), &checkpoint.Change{Thread: "t1", LogID: "log", Expect: head.Revision, Head: head, Runs: []checkpoint.Run{run}})
	require.NoError(t, err)
	return &run
}

// processDue looks at the webhook as if it were due, and waits for what the server does then.
func (s *server) processDue() {
	s.t.Helper()
	head, err := s.store.Head(s.t.Context(), hookThread)
	require.NoError(s.t, err)
	head.Due = head.Now
	require.NoError(s.t, s.ProcessDue(s.t.Context(), head))
	s.tasks.Wait()
}

func (s *server) requireGone() {
	s.t.Helper()
	_, err := s.store.Head(s.t.Context(), hookThread)
	require.ErrorIs(s.t, err, checkpoint.ErrThreadNotFound)
}

// onEachStore runs a test on each store.
func onEachStore(t *testing.T, test func(t *testing.T, store checkpoint.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, memory.New(memory.Options{})) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		test(t, s)
	})
	t.Run("redis", func(t *testing.T) {
		s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL("shared=true")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		test(t, s)
	})
}

func TestAWebhookIsCalledOnceWhenItsRunStops(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		putRun(t, store, checkpoint.RunRunning, 0)
		sender := &fakeSender{}
		s := newServer(t, store, sender)
		require.NoError(t, s.AddWebhook(t.Context(), newWebhook("w1")))
		require.NoError(t, s.AddWebhook(t.Context(), newWebhook("w1")), "it is the same one")
		due, _, err := store.Due(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, []string{hookThread}, due)
		s.processDue()
		require.Empty(t, sender.sent())
		head, err := store.Head(t.Context(), hookThread)
		require.NoError(t, err)
		require.True(t, head.Due.After(head.Now), "it is looked at again later")

		stopped := putRun(t, store, checkpoint.RunInterrupted, 7)
		s.NoteStop(stopped)
		s.tasks.Wait()
		sent := sender.sent()
		require.Len(t, sent, 1)
		require.Equal(t, "https://example.com/secret", sent[0].URL)
		require.Equal(t, checkpoint.RunInterrupted, sent[0].Stopped.State)
		require.Equal(t, 1, sent[0].Attempt)
		s.requireGone()
		s.NoteStop(stopped)
		s.tasks.Wait()
		require.Len(t, sender.sent(), 1)
	})
}

func TestAnotherServerCallsTheWebhook(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		putRun(t, store, checkpoint.RunRunning, 0)
		require.NoError(t, newServer(t, store, &fakeSender{}).AddWebhook(t.Context(), newWebhook("w1")))
		putRun(t, store, checkpoint.RunSucceeded, 3)
		newServer(t, store, nil).processDue() // it calls none
		sender := &fakeSender{}
		other := newServer(t, store, sender)
		other.processDue()
		require.Len(t, sender.sent(), 1)
		other.requireGone()
	})
}

func TestOneServerCallsAtATime(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		putRun(t, store, checkpoint.RunSucceeded, 3)
		sender := &fakeSender{}
		servers := []*server{newServer(t, store, sender), newServer(t, store, sender), newServer(t, store, sender)}
		require.NoError(t, servers[0].AddWebhook(t.Context(), newWebhook("w1")))
		head, err := store.Head(t.Context(), hookThread)
		require.NoError(t, err)
		sender.inside = func() {
			again, err := store.Head(context.WithoutCancel(t.Context()), hookThread)
			require.NoError(t, err)
			require.GreaterOrEqual(t, again.Due.Sub(again.Now), webhooks.SendTimeout, "no server calls it during the attempt")
		}
		var all sync.WaitGroup
		for _, s := range servers {
			all.Go(func() {
				if err := s.ProcessDue(context.WithoutCancel(t.Context()), head); !errors.Is(err, checkpoint.ErrConflict) {
					require.NoError(t, err)
				}
			})
		}
		all.Wait()
		for _, s := range servers {
			s.tasks.Wait()
		}
		require.Len(t, sender.sent(), 1)
	})
}

func TestAttemptsEnd(t *testing.T) {
	down := errors.New("connection refused")
	store := memory.New(memory.Options{})
	putRun(t, store, checkpoint.RunSucceeded, 3)
	sender := &fakeSender{}
	for range webhooks.MaxAttempts {
		sender.errs = append(sender.errs, down)
	}
	s := newServer(t, store, sender)
	require.NoError(t, s.AddWebhook(t.Context(), newWebhook("w1")))
	for attempt := 1; attempt < webhooks.MaxAttempts; attempt++ {
		s.processDue()
		head, err := store.Head(t.Context(), hookThread)
		require.NoError(t, err)
		require.Greater(t, head.Due.Sub(head.Now), webhooks.SendTimeout)
		require.Equal(t, attempt, sender.sent()[attempt-1].Attempt)
	}
	s.processDue()
	s.requireGone()
	require.Len(t, sender.sent(), webhooks.MaxAttempts)

	gone := &fakeSender{errs: []error{runtime.ErrWebhookRefused}}
	s = newServer(t, store, gone)
	require.NoError(t, s.AddWebhook(t.Context(), newWebhook("w1")))
	s.processDue()
	s.requireGone()
}

func TestStopsBeforeTheWebhookDoNotCount(t *testing.T) {
	store := memory.New(memory.Options{})
	putRun(t, store, checkpoint.RunInterrupted, 7)
	sender := &fakeSender{}
	s := newServer(t, store, sender)
	w := newWebhook("w1")
	w.After = 7
	require.NoError(t, s.AddWebhook(t.Context(), w))
	s.processDue()
	require.Empty(t, sender.sent())
	putRun(t, store, checkpoint.RunSucceeded, 9)
	s.processDue()
	require.Len(t, sender.sent(), 1)
}

func TestAWebhookGoesWithItsThread(t *testing.T) {
	store := memory.New(memory.Options{})
	putRun(t, store, checkpoint.RunRunning, 0)
	sender := &fakeSender{}
	s := newServer(t, store, sender)
	require.NoError(t, s.AddWebhook(t.Context(), newWebhook("w1")))
	head, err := store.Head(t.Context(), "t1")
	require.NoError(t, err)
	_, err = store.Apply(t.Context(), &checkpoint.Change{Thread: "t1", LogID: "log", Expect: head.Revision, Delete: true})
	require.NoError(t, err)
	s.processDue()
	s.requireGone()
	require.Empty(t, sender.sent())
}

func TestWebhooksThatAreNotKept(t *testing.T) {
	store := memory.New(memory.Options{})
	requireReason := func(reason string, err error) {
		t.Helper()
		require.ErrorIs(t, err, &runtime.Error{Reason: reason})
	}
	requireReason(runtime.ReasonFeatureDisabled, newServer(t, store, nil).AddWebhook(t.Context(), newWebhook("w1")))
	s := newServer(t, store, &fakeSender{})
	requireReason(runtime.ReasonRunNotFound, s.AddWebhook(t.Context(), newWebhook("w1")))
	putRun(t, store, checkpoint.RunRunning, 0)
	unknown := newWebhook("w1")
	unknown.Run = "r2"
	requireReason(runtime.ReasonRunNotFound, s.AddWebhook(t.Context(), unknown))
	requireReason(runtime.ReasonInvalidField, s.AddWebhook(t.Context(), runtime.RunWebhook{Thread: "t1", Run: "r1", ID: "w1"}))
	for _, id := range []string{"w1", "w2", "w3"} {
		require.NoError(t, s.AddWebhook(t.Context(), newWebhook(id)))
	}
	requireReason(runtime.ReasonTooManyRequests, s.AddWebhook(t.Context(), newWebhook("w4")))
}

// meetingStore answers counts when as many calls as expected wait for one.
type meetingStore struct {
	checkpoint.Store

	all sync.WaitGroup
}

func (m *meetingStore) CountThreads(ctx context.Context, owner string, atMost int) (int, error) {
	n, err := m.Store.CountThreads(ctx, owner, atMost)
	m.all.Done()
	m.all.Wait()
	return n, err
}

// Requests at once, each of which finds no webhook in the store, keep no more than the limit.
func TestRequestsAtOnceKeepTheLimitOfWebhooks(t *testing.T) {
	const requests, limit = 10, 3
	store := &meetingStore{Store: memory.New(memory.Options{})}
	store.all.Add(requests)
	s := newServer(t, store, &fakeSender{})
	putRun(t, store, checkpoint.RunRunning, 0)
	errs := make(chan error, requests)
	for i := range requests {
		go func() { errs <- s.AddWebhook(t.Context(), newWebhook(fmt.Sprintf("w%d", i))) }()
	}
	kept := 0
	for range requests {
		if err := <-errs; err == nil {
			kept++
		} else {
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRequests})
		}
	}
	require.Equal(t, limit, kept)
}

// Whichever call to the store is broken, a webhook that was kept is called, and one whose call was
// repeated is one.
func TestNoWebhookIsLost(t *testing.T) {
	for at := 1; at <= 14; at++ {
		for _, mode := range []faulty.FaultMode{faulty.FailBefore, faulty.FailAfter} {
			inner := memory.New(memory.Options{})
			putRun(t, inner, checkpoint.RunSucceeded, 3)
			broken, sender := faulty.New(inner, faulty.Plan{At: at, For: -1, Mode: mode}), &fakeSender{}
			dying := newServer(t, broken, sender)
			if dying.AddWebhook(t.Context(), newWebhook("w1")) == nil {
				if head, err := broken.Head(t.Context(), hookThread); err == nil {
					_ = dying.ProcessDue(t.Context(), head) // it dies there
					dying.tasks.Wait()
				}
			}
			next := newServer(t, inner, sender)
			if len(sender.sent()) == 0 {
				require.NoError(t, next.AddWebhook(t.Context(), newWebhook("w1")))
			}
			if _, err := inner.Head(t.Context(), hookThread); err == nil {
				next.processDue()
			}
			require.NotEmpty(t, sender.sent(), "at %d", at)
			require.LessOrEqual(t, len(sender.sent()), 2, "at %d", at)
			next.requireGone()
		}
	}
}

func TestALookThatComesLateDoesNotCallAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		sender := &fakeSender{}
		s := newServer(t, store, sender)
		putRun(t, store, checkpoint.RunSucceeded, 1)
		require.NoError(t, s.AddWebhook(t.Context(), newWebhook("w1")))
		sender.inside = func() { // the thread was listed as due before the attempt was claimed
			head, err := store.Head(t.Context(), hookThread)
			require.NoError(t, err)
			if len(sender.sent()) == 1 {
				require.NoError(t, s.ProcessDue(t.Context(), head))
			}
		}
		s.processDue()
		require.Len(t, sender.sent(), 1)
		s.requireGone()
	})
}
