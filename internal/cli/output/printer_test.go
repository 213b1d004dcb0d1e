package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/cli/output"
)

// Every verb that fits an argument formats it, and nothing of it is hidden.
func TestArgumentsAreFormattedThenMadeVisible(t *testing.T) {
	var out strings.Builder
	require.NoError(t, output.WriteLine(&out, "%d of %03d, %.1f%%, %t, %s, %q, %v, %-4s|, %s", 1, int64(2), 33.333, true,
		"a\x1b", "b\u202e", []string{"c\u200b"}, "d", 1500*time.Millisecond))
	require.Equal(t, `1 of 002, 33.3%, true, a\u{1b}, "b\u202e", [c\u{200b}], d   |, 1.5s`+"\n", out.String())
}
