package feed

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// A change of one tenant does not have the followers of another read the store. A signal of
// another process names no thread and wakes all of them.
func TestChangesWakeTheFollowersOfTheirTenant(t *testing.T) {
	var d Feed
	followers := map[string]*InterruptFollower{}
	for _, owner := range []string{"", "default", "acme"} {
		followers[owner] = d.FollowInterrupts(nil, checkpoint.InterruptQuery{Tenant: owner}, 0)
		t.Cleanup(followers[owner].Close)
	}
	requireWoken := func(want ...string) {
		t.Helper()
		var woken []string
		for owner, f := range followers {
			select {
			case <-f.wake:
				woken = append(woken, owner)
			default:
			}
		}
		require.ElementsMatch(t, want, woken)
	}
	d.WakeInterruptFollowers("acme@t")
	requireWoken("", "acme")
	d.WakeInterruptFollowers("t")
	requireWoken("", "default")
	d.WakeInterruptFollowers("acme2@t")
	requireWoken("")
	d.interruptFollowers.handleSignal(checkpoint.SignalRefresh)
	requireWoken("", "default", "acme")
}

// While much happens, a follower reads again after eight times as long as its reader needed for the
// changes, within bounds. After a quiet time it reads at once.
func TestAFollowerRestsAsItsReaderNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		change := uint64(0)
		var read time.Time
		feed := New(Options{
			Now: time.Now,
			ListInterrupts: func(context.Context, *runtime.CallMemory, checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
				read = time.Now()
				change++
				return []checkpoint.Interrupt{{ID: "i", Change: change}}, nil
			},
		})
		f := feed.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0)
		defer f.Close()
		for _, step := range []struct{ needs, want time.Duration }{
			{0, 50 * time.Millisecond},
			{time.Millisecond, 50 * time.Millisecond},
			{10 * time.Millisecond, 80 * time.Millisecond},
			{50 * time.Millisecond, 200 * time.Millisecond},
			{time.Second, time.Second},
		} {
			before := read
			require.NoError(t, backoff.Sleep(t.Context(), step.needs))
			_, err := f.Next(t.Context())
			require.NoError(t, err)
			if !before.IsZero() {
				require.Equal(t, step.want, read.Sub(before))
			}
		}
	})
}

// A follower with a slow reader gets at once what others have read meanwhile, however many reads there
// were. It would come later and later after each of them.
func TestASlowFollowerCatchesUpAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &changeLog{}
		feed := newChangeFeed(l)
		fast, slow := feed.FollowInterrupts(nil, checkpoint.InterruptQuery{}, 0), feed.FollowInterrupts(nil, checkpoint.InterruptQuery{Node: "n"}, 0)
		defer fast.Close()
		defer slow.Close()
		const changes = 40
		for n := range changes {
			l.add([]string{"n", "other"}[n%2])
			found, err := fast.Next(t.Context())
			require.NoError(t, err)
			require.Len(t, found, 1)
		}
		began := time.Now()
		found, err := slow.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, found, changes/2)
		require.Equal(t, uint64(changes), slow.After())
		require.Zero(t, time.Since(began))
		again := feed.FollowInterrupts(nil, checkpoint.InterruptQuery{Node: "n"}, 0)
		defer again.Close()
		shared, err := again.Next(t.Context())
		require.NoError(t, err)
		require.Same(t, found[0], shared[0])
	})
}

func TestManyFollowersRestLonger(t *testing.T) {
	for _, c := range []struct {
		took      time.Duration
		followers int
		want      time.Duration
	}{
		{took: 0, followers: 1, want: 50 * time.Millisecond},
		{took: 10 * time.Millisecond, followers: 1, want: 80 * time.Millisecond},
		{took: time.Second, followers: 1, want: 200 * time.Millisecond},
		{took: 0, followers: 60, want: 120 * time.Millisecond},
		{took: 20 * time.Millisecond, followers: 60, want: 160 * time.Millisecond},
		{took: 0, followers: 10_000, want: 200 * time.Millisecond},
	} {
		require.Equal(t, c.want, computeBusyInterval(c.took, c.followers), "%v", c)
	}
}
