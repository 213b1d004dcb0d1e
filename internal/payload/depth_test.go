package payload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

func TestDepth(t *testing.T) {
	for text, want := range map[payload.JSON]int{
		`1`: 0, `"[[["`: 0, `[]`: 1, `{"a":[1,{"b":"]}\"["}]}`: 3, `[[],[[]]]`: 3, `"\\"`: 0, `["\\",[]]`: 2, ``: 0,
	} {
		require.Equal(t, want, payload.Depth(text), string(text))
	}
}
