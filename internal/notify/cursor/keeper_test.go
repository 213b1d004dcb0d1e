package cursor_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/notify/cursor"
)

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

func newKeeper(s cursor.Store, server string, hold time.Duration) *cursor.Keeper {
	return cursor.New(cursor.Options{Store: s, Endpoint: "mail", Server: server, Hold: hold, IsShared: true})
}

// putQuestion changes a question, and returns the number of the change.
func putQuestion(t *testing.T, s checkpoint.Store, thread string) uint64 {
	t.Helper()
	_, err := s.Apply(t.Context(), &checkpoint.Change{
		Thread: thread, Head: checkpoint.Head{Thread: thread},
		Interrupts: []checkpoint.Interrupt{{ID: "q", Thread: thread, State: checkpoint.InterruptOpen, Created: time.Now()}},
	})
	require.NoError(t, err)
	q, err := s.Interrupt(t.Context(), thread, "q")
	require.NoError(t, err)
	return q.Change
}

func TestAnEndpointBeginsWhereItsPlaceWasCreated(t *testing.T) {
	onEachStore(t, func(t *testing.T, s checkpoint.Store) {
		before := putQuestion(t, s, "a")
		require.NoError(t, cursor.CreatePlace(t.Context(), s, "mail"))
		after := putQuestion(t, s, "b")
		require.NoError(t, cursor.CreatePlace(t.Context(), s, "mail"), "it has a place")
		p, err := newKeeper(s, "one", time.Minute).TakePlace(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, p.Change, before)
		require.Less(t, p.Change, after)
		require.False(t, p.Whole.IsZero())
		require.NoError(t, cursor.CreatePlace(t.Context(), s, "mail"), "a server holds it")
	})
}

func TestOneServerHoldsAPlace(t *testing.T) {
	onEachStore(t, func(t *testing.T, s checkpoint.Store) {
		change := putQuestion(t, s, "a")
		one, other := newKeeper(s, "one", time.Minute), newKeeper(s, "other", time.Minute)
		p, err := one.TakePlace(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, p.Change, change, "it begins with what happens from now on")
		require.False(t, p.Whole.IsZero())
		_, err = other.TakePlace(t.Context())
		require.ErrorIs(t, err, notify.ErrHeld)

		later := putQuestion(t, s, "b")
		saved := notify.Place{Change: later, Whole: time.Now().UTC().Truncate(time.Nanosecond), IsDead: true}
		require.NoError(t, one.SavePlace(t.Context(), saved))
		require.NoError(t, one.ReleasePlace(t.Context(), saved))
		p, err = other.TakePlace(t.Context())
		require.NoError(t, err)
		require.True(t, saved.Whole.Equal(p.Whole))
		p.Whole = saved.Whole
		require.Equal(t, saved, p)
		require.ErrorIs(t, one.SavePlace(t.Context(), saved), notify.ErrHeld)
		require.NoError(t, other.SavePlace(t.Context(), saved))

		threads, err := s.Threads(t.Context(), checkpoint.ThreadQuery{Tenant: "default"})
		require.NoError(t, err)
		require.Len(t, threads, 2)
		due, _, err := s.Due(t.Context(), 0)
		require.NoError(t, err)
		require.Empty(t, due)
	})
}

func TestAServerThatIsSilentLosesThePlace(t *testing.T) {
	onEachStore(t, func(t *testing.T, s checkpoint.Store) {
		one, other := newKeeper(s, "one", 50*time.Millisecond), newKeeper(s, "other", time.Minute)
		p, err := one.TakePlace(t.Context())
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err = other.TakePlace(t.Context())
			return err == nil
		}, time.Minute, 10*time.Millisecond)
		require.ErrorIs(t, one.SavePlace(t.Context(), p), notify.ErrHeld)
		require.ErrorIs(t, one.ReleasePlace(t.Context(), p), notify.ErrHeld)
	})
}

func TestAStoreOfOneProcessIsTakenAtOnce(t *testing.T) {
	s := memory.New(memory.Options{})
	_, err := newKeeper(s, "one", time.Minute).TakePlace(t.Context())
	require.NoError(t, err)
	_, err = cursor.New(cursor.Options{Store: s, Endpoint: "mail", Server: "again", Hold: time.Minute}).TakePlace(t.Context())
	require.NoError(t, err)
}

// A store that has lost its newest changes gives their numbers to other changes.
func TestAPlaceIsNotBeyondTheStore(t *testing.T) {
	s := memory.New(memory.Options{})
	one := newKeeper(s, "one", time.Minute)
	p, err := one.TakePlace(t.Context())
	require.NoError(t, err)
	p.Change = 1000
	require.NoError(t, one.SavePlace(t.Context(), p))
	p, err = one.TakePlace(t.Context())
	require.NoError(t, err)
	require.Zero(t, p.Change)
}

func TestAStoreThatHasLostChangesEndsTheHold(t *testing.T) {
	s := memory.New(memory.Options{})
	one := newKeeper(s, "one", time.Minute)
	p, err := one.TakePlace(t.Context())
	require.NoError(t, err)
	earlier, err := s.Head(t.Context(), cursor.ThreadName("mail"))
	require.NoError(t, err)
	p.Change = 7
	require.NoError(t, one.SavePlace(t.Context(), p))
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: earlier.Thread, Expect: earlier.Revision + 1, Delete: true})
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), &checkpoint.Change{Thread: earlier.Thread, Head: earlier})
	require.NoError(t, err)
	require.ErrorIs(t, one.SavePlace(t.Context(), p), notify.ErrHeld)
	p, err = one.TakePlace(t.Context())
	require.NoError(t, err)
	require.Zero(t, p.Change)
}

// lossy loses the answers of some changes that it makes.
type lossy struct {
	checkpoint.Store

	loses bool
}

func (l *lossy) Apply(ctx context.Context, c *checkpoint.Change) (checkpoint.Receipt, error) {
	r, err := l.Store.Apply(ctx, c)
	if l.loses && err == nil {
		return r, errors.New("no answer")
	}
	return r, err
}

func TestALostAnswerLosesNoPlace(t *testing.T) {
	onEachStore(t, func(t *testing.T, s checkpoint.Store) {
		l := &lossy{Store: s}
		one := newKeeper(l, "one", time.Minute)
		p, err := one.TakePlace(t.Context())
		require.NoError(t, err)
		l.loses = true
		require.Error(t, one.SavePlace(t.Context(), p))
		l.loses = false
		require.NoError(t, one.SavePlace(t.Context(), p))
	})
}
