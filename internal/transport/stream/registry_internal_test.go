package stream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// The error of a caller that exceeds a limit names the option of the server.
func TestStreamLimitsNameTheOption(t *testing.T) {
	s := NewRegistry(Settings{MaxStreams: 1, MaxInterruptStreams: 1, MaxThreadStreams: 1})
	require.NoError(t, s.AddInterruptStream(t.Context()))
	require.ErrorContains(t, s.AddStream(t.Context()), "(--max-streams)")
	s.MaxStreams = 9
	require.ErrorContains(t, s.AddInterruptStream(t.Context()), "(--max-inbox-streams)")
	require.NoError(t, s.AddThreadStream("t"))
	require.ErrorContains(t, s.AddThreadStream("t"), "(--max-thread-streams)")
}

func TestWaitingForAnOpeningSlotIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewRegistry(Settings{MaxOpening: 1})
		begun, err := s.AcquireOpeningSlot(t.Context())
		require.NoError(t, err)
		ctx, leave := context.WithTimeout(t.Context(), openingTimeout/2)
		defer leave()
		_, err = s.AcquireOpeningSlot(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.AcquireOpeningSlot(t.Context())
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonTooManySubscribers})
		refused, ok := errors.AsType[*runtime.Error](err)
		require.True(t, ok)
		require.Equal(t, "1", refused.Meta["limit"])
		time.AfterFunc(openingTimeout/2, begun)
		begun, err = s.AcquireOpeningSlot(t.Context())
		require.NoError(t, err)
		begun()
		require.Empty(t, s.openingSlots)
	})
}
