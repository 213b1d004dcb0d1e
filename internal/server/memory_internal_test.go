package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A busy server keeps the memory that it will use next. A server at rest returns
// the memory of a peak, also when nothing has been collected since.
func TestSpareMemoryIsGivenBackAtRest(t *testing.T) {
	const mib = 1 << 20
	var s heapWatcher
	require.False(t, s.shouldFreeMemory(heapStats{liveBytes: 100 * mib, heldBytes: 500 * mib, allocatedBytes: 1000 * mib, collections: 1}), "what is held was just used")
	require.False(t, s.shouldFreeMemory(heapStats{liveBytes: 100 * mib, heldBytes: 500 * mib, allocatedBytes: 1500 * mib, collections: 2}), "and again")
	require.True(t, s.shouldFreeMemory(heapStats{liveBytes: 100 * mib, heldBytes: 500 * mib, allocatedBytes: 1501 * mib, collections: 2}), "hardly anything is used now")
	require.False(t, s.shouldFreeMemory(heapStats{liveBytes: 100 * mib, heldBytes: 110 * mib, allocatedBytes: 1502 * mib, collections: 3}), "nothing is spare")

	allocated := uint64(1502 * mib)
	for range maxChecksWithoutGC - 1 {
		allocated += 2 * mib
		require.False(t, s.shouldFreeMemory(heapStats{liveBytes: 100 * mib, heldBytes: 116 * mib, allocatedBytes: allocated, collections: 3}))
	}
	require.True(t, s.shouldFreeMemory(heapStats{liveBytes: 100 * mib, heldBytes: 116 * mib, allocatedBytes: allocated, collections: 3}), "what is live is known from long ago")
	for range 2 * maxChecksWithoutGC {
		require.False(t, s.shouldFreeMemory(heapStats{liveBytes: 20 * mib, heldBytes: 25 * mib, allocatedBytes: allocated, collections: 4}), "nothing happens")
	}
}
