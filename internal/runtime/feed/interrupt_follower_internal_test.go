package feed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
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
