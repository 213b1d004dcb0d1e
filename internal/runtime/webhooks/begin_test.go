package webhooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/webhooks"
)

func newRequest() *webhooks.Request {
	return &webhooks.Request{Thread: "t1", ID: "w1", Digest: "d1", URL: "https://example.com/secret", Field: "run.webhook"}
}

// beginRun stores the run r1 of the thread t1 for the request w1, as a server does that admits it.
func beginRun(ctx context.Context, store checkpoint.Store, state checkpoint.RunState) (*runtime.Started, error) {
	head, err := store.Head(ctx, "t1")
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		head, err = checkpoint.Head{Thread: "t1", LogID: "log", State: checkpoint.ThreadIdle}, nil
	}
	if err != nil {
		return nil, runtime.TranslateStoreError(err)
	}
	run := checkpoint.Run{ID: "r1", Thread: "t1", State: state, LastEvent: 9}
	_, err = store.Apply(ctx, &checkpoint.Change{
		Thread: "t1", LogID: "log", Expect: head.Revision, Head: head, Runs: []checkpoint.Run{run},
		Request: &checkpoint.Request{ID: "w1", Digest: "d1", Run: "r1", Event: 7, Created: time.Now()},
	})
	return &runtime.Started{Run: run, Head: head, After: 7}, runtime.TranslateStoreError(err)
}

// refuse is a begin that refuses the run.
func refuse(context.Context) (*runtime.Started, error) {
	return nil, runtime.Errorf(runtime.ReasonThreadBusy, "busy")
}

// lookLater looks at the webhook as a server does after a time.
func (s *server) lookLater(d time.Duration) {
	s.t.Helper()
	head, err := s.store.Head(s.t.Context(), hookThread)
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return
	}
	require.NoError(s.t, err)
	head.Now = head.Now.Add(d)
	head.Due = head.Now
	require.NoError(s.t, s.ProcessDue(s.t.Context(), head))
	s.tasks.Wait()
}

func TestAWebhookIsKeptBeforeItsRunBegins(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		sender := &fakeSender{}
		s := newServer(t, store, sender)
		started, err := s.BeginRun(t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
			_, err := store.Head(ctx, hookThread)
			require.NoError(t, err)
			return beginRun(ctx, store, checkpoint.RunRunning)
		})
		require.NoError(t, err)
		require.Equal(t, "r1", started.Run.ID)
		require.Empty(t, sender.sent())
		stopped := putRun(t, store, checkpoint.RunInterrupted, 11)
		s.NoteStop(stopped)
		s.tasks.Wait()
		sent := sender.sent()
		require.Len(t, sent, 1)
		require.Equal(t, runtime.RunWebhook{Thread: "t1", Run: "r1", ID: "w1", After: 7, URL: "https://example.com/secret"}, sent[0].RunWebhook)
		s.requireGone()
	})
}

func TestARunThatStopsAtOnceIsTold(t *testing.T) {
	store, sender := memory.New(memory.Options{}), &fakeSender{}
	s := newServer(t, store, sender)
	_, err := s.BeginRun(t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
		return beginRun(ctx, store, checkpoint.RunSucceeded)
	})
	require.NoError(t, err)
	s.tasks.Wait()
	require.Len(t, sender.sent(), 1)
	s.requireGone()
}

func TestAWebhookThatIsRefusedBeginsNoRun(t *testing.T) {
	store := memory.New(memory.Options{})
	putRun(t, store, checkpoint.RunRunning, 0)
	s := newServer(t, store, &fakeSender{})
	begin := func(context.Context) (*runtime.Started, error) { panic("the run begins") }
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, s.AddWebhook(t.Context(), newWebhook(id)))
	}
	_, err := s.BeginRun(t.Context(), newRequest(), begin)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManyRequests})
	wrong := newRequest()
	wrong.URL = ""
	_, err = s.BeginRun(t.Context(), wrong, begin)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInvalidField})
	_, err = newServer(t, store, nil).BeginRun(t.Context(), newRequest(), begin)
	require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonFeatureDisabled})
	s.requireGone()
}

func TestARunThatIsRefusedLeavesNoWebhook(t *testing.T) {
	onEachStore(t, func(t *testing.T, store checkpoint.Store) {
		s := newServer(t, store, &fakeSender{})
		_, err := s.BeginRun(t.Context(), newRequest(), refuse)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonThreadBusy})
		s.requireGone()
	})
}

func TestARefusedRepeatLeavesTheWebhookOfTheOther(t *testing.T) {
	for name, inside := range map[string]func(s *server, store checkpoint.Store){
		"a repeat has come since": func(s *server, _ checkpoint.Store) {
			_, err := s.BeginRun(s.t.Context(), newRequest(), func(context.Context) (*runtime.Started, error) { return nil, context.Canceled })
			require.ErrorIs(s.t, err, context.Canceled)
		},
		"the run has begun": func(s *server, store checkpoint.Store) {
			_, err := s.BeginRun(s.t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
				return beginRun(ctx, store, checkpoint.RunRunning)
			})
			require.NoError(s.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			s := newServer(t, store, &fakeSender{})
			_, err := s.BeginRun(t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
				inside(s, store)
				return refuse(ctx)
			})
			require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonThreadBusy})
			_, err = store.Head(t.Context(), hookThread)
			require.NoError(t, err)
		})
	}
}

func TestARunThatBeganWhileARepeatWasRefusedHasItsWebhook(t *testing.T) {
	store, sender := memory.New(memory.Options{}), &fakeSender{}
	s := newServer(t, store, sender)
	_, err := s.BeginRun(t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
		_, err := s.BeginRun(ctx, newRequest(), refuse)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonThreadBusy})
		s.requireGone()
		return beginRun(ctx, store, checkpoint.RunSucceeded)
	})
	require.NoError(t, err)
	s.tasks.Wait()
	require.Len(t, sender.sent(), 1)
}

func TestAnotherRequestWithTheSameIDIsRefused(t *testing.T) {
	store := memory.New(memory.Options{})
	s := newServer(t, store, &fakeSender{})
	_, err := s.BeginRun(t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
		other := newRequest()
		other.Digest = "d2"
		_, err := s.BeginRun(ctx, other, refuse)
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonRequestIDConflict})
		return beginRun(ctx, store, checkpoint.RunRunning)
	})
	require.NoError(t, err)
	_, err = store.Head(t.Context(), hookThread)
	require.NoError(t, err)
}

// An answer that another request has given before is not remembered by the thread.
func TestAnAnswerThatWasGivenBeforeIsTold(t *testing.T) {
	store, sender := memory.New(memory.Options{}), &fakeSender{}
	s := newServer(t, store, sender)
	run := putRun(t, store, checkpoint.RunSucceeded, 9)
	_, err := s.BeginRun(t.Context(), newRequest(), func(context.Context) (*runtime.Started, error) {
		return &runtime.Started{Run: *run, After: 9, IsAttached: true}, nil
	})
	require.NoError(t, err)
	s.tasks.Wait()
	require.Len(t, sender.sent(), 1)

	run = putRun(t, store, checkpoint.RunInterrupted, 12)
	_, err = s.BeginRun(t.Context(), newRequest(), func(context.Context) (*runtime.Started, error) {
		return &runtime.Started{Run: *run, Head: checkpoint.Head{Retractable: 1}, After: 12, IsAttached: true}, nil
	})
	require.NoError(t, err)
	s.tasks.Wait()
	require.Len(t, sender.sent(), 1, "the answer takes effect later")
	putRun(t, store, checkpoint.RunSucceeded, 14)
	s.lookLater(time.Hour)
	require.Len(t, sender.sent(), 2)
}

// Whichever call to the store is the last one of a server that dies: a run that has begun has its
// webhook, and one that has not leaves none.
func TestARunHasItsWebhookAfterAnyCrash(t *testing.T) {
	onEachStore(t, func(t *testing.T, inner checkpoint.Store) {
		for at := 1; at <= 16; at++ {
			for _, mode := range []faulty.FaultMode{faulty.FailBefore, faulty.FailAfter} {
				broken, sender := faulty.New(inner, faulty.Plan{At: at, For: -1, Mode: mode}), &fakeSender{}
				dying := newServer(t, broken, sender)
				_, err := dying.BeginRun(t.Context(), newRequest(), func(ctx context.Context) (*runtime.Started, error) {
					return beginRun(ctx, broken, checkpoint.RunSucceeded)
				})
				dying.tasks.Wait()
				_, unbegun := inner.Run(t.Context(), "t1", "r1")
				require.True(t, err != nil || unbegun == nil, "at %d: an answer without a run", at)

				next := newServer(t, inner, sender)
				next.lookLater(0)
				if unbegun != nil {
					_, err := inner.Head(t.Context(), hookThread)
					require.True(t, err == nil || errors.Is(err, checkpoint.ErrThreadNotFound))
					next.lookLater(time.Hour)
					require.Empty(t, sender.sent(), "at %d", at)
				} else {
					next.lookLater(time.Hour) // the attempt of the dying server
					require.NotEmpty(t, sender.sent(), "at %d: a run without a webhook", at)
					require.LessOrEqual(t, len(sender.sent()), 2, "at %d", at)
				}
				next.requireGone()
				deleteThread(t, inner)
			}
		}
	})
}

func deleteThread(t *testing.T, store checkpoint.Store) {
	t.Helper()
	head, err := store.Head(t.Context(), "t1")
	if errors.Is(err, checkpoint.ErrThreadNotFound) {
		return
	}
	require.NoError(t, err)
	_, err = store.Apply(t.Context(), &checkpoint.Change{Thread: "t1", LogID: "log", Expect: head.Revision, Delete: true})
	require.NoError(t, err)
}
