package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A caller that is refused for a limit is told the option of the server that sets it.
func TestStreamLimitsNameTheOption(t *testing.T) {
	s := &streamRegistry{maxStreams: 1, maxInterruptStreams: 1, maxThreadStreams: 1}
	require.NoError(t, s.addInterruptStream())
	require.ErrorContains(t, s.addStream(), "(--max-streams)")
	s.maxStreams = 9
	require.ErrorContains(t, s.addInterruptStream(), "(--max-inbox-streams)")
	require.NoError(t, s.addThreadStream("t"))
	require.ErrorContains(t, s.addThreadStream("t"), "(--max-thread-streams)")
}
