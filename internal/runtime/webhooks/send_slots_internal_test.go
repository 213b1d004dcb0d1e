package webhooks

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAHostThatHangsLeavesSlotsToOthers(t *testing.T) {
	var s sendSlots
	hanging := func(i int) target { return target{"hangs", strconv.Itoa(i)} }
	for i := range maxHostSends {
		require.True(t, s.takeSlot("a", hanging(i)))
	}
	require.False(t, s.takeSlot("a", hanging(maxHostSends)))
	require.False(t, s.takeSlot("b", hanging(maxHostSends)))
	for i := maxHostSends; i < maxTenantSends; i++ {
		require.True(t, s.takeSlot("a", target{host: strconv.Itoa(i)}))
	}
	require.False(t, s.takeSlot("a", target{host: "other"}), "a tenant with many hosts")
	for i := maxTenantSends; i < maxParallelSends; i++ {
		require.True(t, s.takeSlot("b", target{host: strconv.Itoa(i)}))
	}
	require.False(t, s.takeSlot("c", target{host: "other"}), "all slots are taken")
	s.freeSlot("a", hanging(0))
	require.True(t, s.takeSlot("b", hanging(0)))
	require.Equal(t, target{"h.example", "/x"}, targetOf("https://H.example:8443/x?y=1"))
}

func TestAPathThatHangsLeavesSlotsToOthersOfItsHost(t *testing.T) {
	var s sendSlots
	take := func(path string) (n int) {
		for s.takeSlot("a", target{"h", path}) {
			n++
		}
		return n
	}
	require.Equal(t, 4, take("/hangs"))
	require.Equal(t, 2, take("/hangs-too"))
	require.Equal(t, 1, take("/answers"))
	s.freeSlot("a", target{"h", "/answers"})
	require.Zero(t, take("/hangs")+take("/hangs-too"), "what is free is for another path")
	require.Equal(t, 1, take("/answers"))
	for range 4 {
		s.freeSlot("a", target{"h", "/hangs"})
	}
	for range 2 {
		s.freeSlot("a", target{"h", "/hangs-too"})
	}
	s.freeSlot("a", target{"h", "/answers"})
	require.Empty(t, s.byTarget, "nothing is kept of targets that are not called")
}

func TestAFurtherRunIsWatchedInPlaceOfAnother(t *testing.T) {
	var w watchedRuns
	for i := range maxWatched + 10 {
		w.add("t", strconv.Itoa(i), "h")
		require.True(t, w.has("t", strconv.Itoa(i)))
	}
	require.Len(t, w.hooks, maxWatched)
}
