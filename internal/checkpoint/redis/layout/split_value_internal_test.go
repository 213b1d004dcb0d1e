package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllocatedSize(t *testing.T) {
	for n, want := range map[int]int{
		1: 16, 16: 16, 17: 32, 128: 128, 129: 160, 160: 160, 250: 256, 257: 320, 1024: 1024, 1025: 1280, 1281: 1536, 2048: 2048, 2049: 2560,
	} {
		require.Equal(t, want, allocatedSize(n), n)
	}
}

func TestValuesAreSplitWhereThatSavesMemory(t *testing.T) {
	require.Zero(t, SplitOffset(511))
	require.Zero(t, SplitOffset(1017), "it fills its place")
	require.Equal(t, 1017, SplitOffset(1026), "9 bytes would take 256 more")
	require.Zero(t, SplitOffset(1260), "it nearly fills its place")
	for n := 512; n < 1<<18; n += 1 + n/100 {
		first := SplitOffset(n)
		if first == 0 {
			continue
		}
		require.Less(t, first, n)
		parts := allocatedSize(first+len(SplitMark)+textOverhead) + fieldOverhead + allocatedSize(n-first+textOverhead)
		require.LessOrEqual(t, parts, allocatedSize(n+textOverhead)-n/10, n)
	}
}
