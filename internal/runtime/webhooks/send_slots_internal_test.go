package webhooks

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAHostThatHangsLeavesSlotsToOthers(t *testing.T) {
	var s sendSlots
	for range maxHostSends {
		require.True(t, s.takeSlot("a", "hangs"))
	}
	require.False(t, s.takeSlot("a", "hangs"))
	require.False(t, s.takeSlot("b", "hangs"))
	for i := maxHostSends; i < maxTenantSends; i++ {
		require.True(t, s.takeSlot("a", strconv.Itoa(i)))
	}
	require.False(t, s.takeSlot("a", "other"), "a tenant with many hosts")
	for i := maxTenantSends; i < maxParallelSends; i++ {
		require.True(t, s.takeSlot("b", strconv.Itoa(i)))
	}
	require.False(t, s.takeSlot("c", "other"), "all slots are taken")
	s.freeSlot("a", "hangs")
	require.True(t, s.takeSlot("b", "hangs"))
	require.Equal(t, "h.example", hostOf("https://H.example:8443/x"))
}

func TestAFurtherRunIsWatchedInPlaceOfAnother(t *testing.T) {
	var w watchedRuns
	for i := range maxWatched + 10 {
		w.add("t", strconv.Itoa(i), "h")
		require.True(t, w.has("t", strconv.Itoa(i)))
	}
	require.Len(t, w.hooks, maxWatched)
}
