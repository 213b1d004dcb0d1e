package reason_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// A caller that is refused for a limit is told the option of the server that sets it.
func TestPayloadLimitsNameTheOption(t *testing.T) {
	limits := payload.Limits{MaxBytes: 4, MaxDepth: 1}
	require.ErrorContains(t, reason.ToPayloadError(payload.Validate(`"12345"`, limits)), "limit of 4 bytes (--max-payload)")
	require.ErrorContains(t, reason.ToPayloadError(payload.Validate(`[[]]`, limits)), "(--max-depth)")
}
