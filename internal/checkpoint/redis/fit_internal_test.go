package redis

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoom(t *testing.T) {
	for n, want := range map[int]int{
		1: 16, 16: 16, 17: 32, 128: 128, 129: 160, 160: 160, 250: 256, 257: 320, 1024: 1024, 1025: 1280, 1281: 1536, 2048: 2048, 2049: 2560,
	} {
		require.Equal(t, want, room(n), n)
	}
}

func TestValuesAreDividedWhereThatSavesRoom(t *testing.T) {
	require.Zero(t, fit(511))
	require.Zero(t, fit(1017), "it fills its place")
	require.Equal(t, 1017, fit(1026), "9 bytes would take 256 more")
	require.Zero(t, fit(1260), "it nearly fills its place")
	for n := 512; n < 1<<18; n += 1 + n/100 {
		first := fit(n)
		if first == 0 {
			continue
		}
		require.Less(t, first, n)
		parts := room(first+len(divided)+around) + perField + room(n-first+around)
		require.LessOrEqual(t, parts, room(n+around)-n/10, n)
	}
}
