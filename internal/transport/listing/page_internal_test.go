package listing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSkipShownGoesOn passes over numbers of which a caller gets every fourth, in several calls.
func TestSkipShownGoesOn(t *testing.T) {
	const count = 5000
	shows := func(n *int) bool { return *n%4 == 0 }
	for _, skip := range []int{0, 1, 250, 251, 1000, 1249, 1250, 1251} {
		at, left, more, calls := -1, skip, true, 0
		read := func(limit int, after *int) (items []int, more bool, err error) {
			begin := at + 1
			if after != nil {
				begin = *after + 1
			}
			for n := begin; n < min(begin+limit, count); n++ {
				items = append(items, n)
			}
			return items, begin+limit < count, nil
		}
		for left > 0 && more {
			passed, last, hasMore, err := SkipShown(left, shows, read)
			require.NoError(t, err)
			if last != nil {
				require.LessOrEqual(t, *last-at, maxLookedAt, "a call looks at a bounded number")
				at = *last
			}
			left, more = left-passed, hasMore
			calls++
		}
		require.Equal(t, max(0, skip-count/4), left, skip)
		if left == 0 && skip > 0 {
			require.Equal(t, 4*(skip-1), at)
		}
		require.LessOrEqual(t, calls, count/maxLookedAt+1)
	}
}
