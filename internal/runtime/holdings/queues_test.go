package holdings_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/holdings"
)

// queueRun queues a run of a thread, whose queue is one longer then.
func queueRun(t *testing.T, k *holdings.Keeper, s *fakeStore, thread string) error {
	t.Helper()
	done, err := k.AddQueuedRun(t.Context(), thread)
	if err == nil {
		s.queues[thread]++
		k.NoteCommitted(thread, s.queues[thread], nil)
		done()
	}
	return err
}

// Tenants that come and go are forgotten: those without queued runs before others, and
// those that have not queued one for long before others.
func TestTenantsWithoutQueuesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		k, _ := newKeeper(s, fakeLimits{runtime.HoldingQueuedRuns: 2})
		sleep(time.Second)
		require.NoError(t, queueRun(t, k, s, "full@00"))
		require.NoError(t, queueRun(t, k, s, "full@00"))
		for n := range 2 * holdings.MaxTenants {
			thread := fmt.Sprintf("tenant%d@00", n)
			require.NoError(t, queueRun(t, k, s, thread))
			k.NoteCommitted(thread, 0, nil) // it has begun
			require.LessOrEqual(t, holdings.CountTenants(k), holdings.MaxTenants)
		}
		requireFull(t, queueRun(t, k, s, "full@00"))

		for n := range 2 * holdings.MaxTenants { // they stay queued
			sleep(time.Millisecond)
			require.NoError(t, queueRun(t, k, s, fmt.Sprintf("queue%d@00", n)))
			require.LessOrEqual(t, holdings.CountTenants(k), holdings.MaxTenants)
			if n%100 == 0 {
				requireFull(t, queueRun(t, k, s, "full@00"))
			}
		}
	})
}

// A tenant that was forgotten has its queues counted anew.
func TestForgottenTenantsAreCountedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		k, background := newKeeper(s, fakeLimits{runtime.HoldingQueuedRuns: 3})
		sleep(time.Second)
		require.NoError(t, queueRun(t, k, s, "full@00"))
		require.NoError(t, queueRun(t, k, s, "full@01"))
		pending, err := k.AddQueuedRun(t.Context(), "pending@00")
		require.NoError(t, err)
		for n := range 2 * holdings.MaxTenants {
			sleep(time.Millisecond)
			require.NoError(t, queueRun(t, k, s, fmt.Sprintf("queue%d@00", n)))
		}
		background() // lists of tenants that are forgotten end
		require.NoError(t, queueRun(t, k, s, "full@00"), "nothing is known of the tenant")
		background()
		requireFull(t, queueRun(t, k, s, "full@00"))

		k.NoteCommitted("pending@00", 1, nil)
		pending()
		s.queues["pending@00"] = 1
		require.NoError(t, queueRun(t, k, s, "pending@00"))
		require.NoError(t, queueRun(t, k, s, "pending@01"))
		requireFull(t, queueRun(t, k, s, "pending@00"))
	})
}
