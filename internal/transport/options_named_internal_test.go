package transport

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/payload"
)

// Who is refused for a limit is told the option of the server that sets it.
func TestTextsNameTheOption(t *testing.T) {
	limits := payload.Limits{MaxBytes: 4, MaxDepth: 1}
	require.ErrorContains(t, payloadRefusal(payload.Validate(`"12345"`, limits)), "limit of 4 bytes (--max-payload)")
	require.ErrorContains(t, payloadRefusal(payload.Validate(`[[]]`, limits)), "(--max-depth)")
	s := &streams{max: 1, maxInbox: 1, maxThread: 1}
	require.NoError(t, s.enterInbox())
	require.ErrorContains(t, s.enter(), "(--max-streams)")
	s.max = 9
	require.ErrorContains(t, s.enterInbox(), "(--max-inbox-streams)")
	require.NoError(t, s.enterThread("t"))
	require.ErrorContains(t, s.enterThread("t"), "(--max-thread-streams)")
}
