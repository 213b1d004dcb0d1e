package reason_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/transport/reason"
)

// The error of a caller that exceeds a limit names the option of the server.
func TestPayloadLimitsNameTheOption(t *testing.T) {
	limits := payload.Limits{MaxBytes: 4, MaxDepth: 1}
	require.ErrorContains(t, reason.ToPayloadError(payload.Validate(`"12345"`, limits)), "limit of 4 bytes (--max-payload)")
	require.ErrorContains(t, reason.ToPayloadError(payload.Validate(`[[]]`, limits)), "(--max-depth)")
}
