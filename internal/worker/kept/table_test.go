package kept_test

import (
	"crypto/sha256"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/worker/kept"
)

const large = 10_000

func digestOf(name byte) kept.Digest { return sha256.Sum256([]byte{name}) }

func newTable(maxBytes int64) *kept.Table { return kept.NewTable(maxBytes, &kept.Counts{}) }

func TestATableOfAWorkerThatKeepsNothing(t *testing.T) {
	for _, bytes := range []int64{-1, 0, kept.MinBytes - 1} {
		none := newTable(bytes)
		require.Nil(t, none)
		require.False(t, none.MayKeep(large))
		none.RemoveValues([]kept.Digest{digestOf(1)})
		require.Empty(t, none.TakeForgotten(kept.MaxValues))
	}
}

func TestOnlyLargeValuesThatFitAreKept(t *testing.T) {
	table := newTable(large)
	require.False(t, table.MayKeep(kept.MinBytes-1))
	require.True(t, table.MayKeep(kept.MinBytes))
	require.True(t, table.MayKeep(large))
	require.False(t, table.MayKeep(large+1))
}

func TestAValueThatIsUsedStays(t *testing.T) {
	table := newTable(2 * large)
	table.AddValue(digestOf(1), large)
	table.AddValue(digestOf(2), large)
	require.True(t, table.UseValue(digestOf(1)))
	table.AddValue(digestOf(3), large)
	require.Equal(t, []kept.Digest{digestOf(2)}, table.TakeForgotten(kept.MaxValues))
	require.Empty(t, table.TakeForgotten(kept.MaxValues), "once")
	require.True(t, table.UseValue(digestOf(1)))
	require.False(t, table.UseValue(digestOf(2)))
}

func TestForgottenValuesAreToldAFewAtATime(t *testing.T) {
	table := newTable(large)
	for i := range byte(4) {
		table.AddValue(digestOf(i), large)
	}
	require.Equal(t, []kept.Digest{digestOf(0), digestOf(1)}, table.TakeForgotten(2))
	table.AddValue(digestOf(2), large)
	require.Equal(t, []kept.Digest{digestOf(3)}, table.TakeForgotten(2))
	require.Empty(t, table.TakeForgotten(2))
}

// A value that is sent once more while the worker was not told yet to forget it must stay.
func TestAValueThatComesBackIsNotForgotten(t *testing.T) {
	table := newTable(2 * large)
	table.AddValue(digestOf(1), large)
	table.RemoveValues([]kept.Digest{digestOf(1), digestOf(9)})
	require.False(t, table.UseValue(digestOf(1)))
	table.AddValue(digestOf(1), large)
	table.AddValue(digestOf(1), large)
	require.Empty(t, table.TakeForgotten(kept.MaxValues))
	table.AddValue(digestOf(2), large)
	require.True(t, table.UseValue(digestOf(1)), "it counts once")
}

func TestManyValuesMakePlaceBeforeTheirBytesDo(t *testing.T) {
	table := newTable(1 << 40)
	for i := range kept.MaxValues + 2 {
		table.AddValue(sha256.Sum256([]byte{byte(i), byte(i >> 8)}), large)
	}
	require.Len(t, table.TakeForgotten(kept.MaxValues), 2)
}

// A worker that does as it is told has every value that it is referred to, and no more bytes than it
// has said. Each step of the input is a message with up to three values, or a loss.
func FuzzTable(f *testing.F) {
	f.Add([]byte{1, 2, 3, 1, 2, 3, 4, 5, 200, 1, 1, 1})
	f.Add([]byte{0, 7, 14, 21, 28, 35, 42, 49, 251, 0, 7, 14})
	f.Fuzz(func(t *testing.T, steps []byte) {
		const most = 5 * large
		table := newTable(most)
		worker := map[kept.Digest]int{}
		for len(steps) > 0 {
			if steps[0] > 250 { // the worker has lost a value, and says so
				d := digestOf(steps[0] % 16)
				delete(worker, d)
				table.RemoveValues([]kept.Digest{d})
				steps = steps[1:]
				continue
			}
			var uses []kept.Digest
			keeps := map[kept.Digest]int{}
			for range 3 {
				if len(steps) == 0 || steps[0] > 250 {
					break
				}
				d, size := digestOf(steps[0]%16), kept.MinBytes+int(steps[0]%16)*3000
				steps = steps[1:]
				switch {
				case !table.MayKeep(size):
				case table.UseValue(d):
					uses = append(uses, d)
				default:
					table.AddValue(d, size)
					keeps[d] = size
				}
			}
			maps.Copy(worker, keeps)
			for _, d := range uses {
				require.Contains(t, worker, d)
			}
			for _, d := range table.TakeForgotten(kept.MaxValues) {
				delete(worker, d)
			}
			sum := 0
			for _, size := range worker {
				sum += size
			}
			require.LessOrEqual(t, sum, most)
		}
	})
}
