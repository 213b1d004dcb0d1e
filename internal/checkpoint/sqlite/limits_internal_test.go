package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// A change beyond a limit is refused before it waits, and the limit is named.
func TestAChangeThatIsTooLargeIsRefused(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "a.db"), MaxChangeBytes: 100_000, MaxChangeRows: 10})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	_, err = s.Apply(t.Context(), newThreadOf("t", 100_000))
	var size *checkpoint.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, []any{"max-change-bytes", 100_000}, []any{size.Limit, size.Max})
	require.Greater(t, size.Actual, 100_000)
	require.NotErrorIs(t, err, checkpoint.ErrUnavailable, "it is not to be tried again")
	many := newThreadOf("t", 10)
	for i := range 10 {
		many.Memos = append(many.Memos, checkpoint.Memo{Task: "x", Checkpoint: "1", Key: fmt.Sprint(i), Value: "1"})
	}
	_, err = s.Apply(t.Context(), many)
	require.ErrorAs(t, err, &size)
	require.Equal(t, []any{"max-change-rows", 10}, []any{size.Limit, size.Max})
	_, err = s.Head(t.Context(), "t")
	require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
	_, err = s.Apply(t.Context(), newThreadOf("t", 10_000))
	require.NoError(t, err)
}
