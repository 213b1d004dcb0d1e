package statistics

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// bucketCount is the number of buckets of waits: those of listBounds, and one for longer
// waits.
const bucketCount = 24

// waits counts waits by bucket.
type waits [bucketCount]uint32

// listBounds returns the upper bounds of the buckets.
func listBounds() [bucketCount - 1]time.Duration {
	const s, m, h, d = time.Second, time.Minute, time.Hour, 24 * time.Hour
	return [...]time.Duration{
		s, 2 * s, 5 * s, 10 * s, 20 * s, 30 * s, m, 2 * m, 5 * m, 10 * m, 15 * m, 30 * m, 45 * m,
		h, 2 * h, 3 * h, 4 * h, 8 * h, 12 * h, d, 2 * d, 4 * d, 7 * d,
	}
}

// findBucket returns the bucket of a wait.
func findBucket(wait time.Duration) int {
	bounds := listBounds()
	at, _ := slices.BinarySearch(bounds[:], wait)
	return at
}

func (w *waits) addWaits(other *waits) {
	for i, n := range other {
		w[i] += n
	}
}

// summarize returns the quantiles of the waits.
func (w *waits) summarize() runtime.WaitTimes {
	return runtime.WaitTimes{Median: w.quantile(0.5), P95: w.quantile(0.95)}
}

// quantile returns a wait that the share of all waits does not exceed: waits are taken as
// evenly spread over their bucket, and those beyond the last bound as that long.
func (w *waits) quantile(share float64) time.Duration {
	var total uint64
	for _, n := range w {
		total += uint64(n)
	}
	if total == 0 {
		return 0
	}
	rank := share * float64(total)
	bounds := listBounds()
	lower, before := time.Duration(0), 0.0
	for i, upper := range bounds {
		n := float64(w[i])
		if n > 0 && before+n >= rank {
			return lower + time.Duration(float64(upper-lower)*(rank-before)/n)
		}
		lower, before = upper, before+n
	}
	return lower
}
