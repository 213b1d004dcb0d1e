package stream

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Clients that do not read do not prevent other watches from beginning.
func TestSlowReadersLetOthersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		p := newTestStreamer(newFakeThread(), &streamCounts{})
		p.openingSlots = make(chan struct{}, 1)
		done := make(chan error)
		go func() {
			done <- newWatchCall(&graphdv1.WatchRequest{SnapshotFirst: true, Follow: true})(p, &fakeStream{ctx: ctx})
		}()
		synctest.Wait()
		select {
		case err := <-done:
			require.Fail(t, "the slow client's watch has ended", err)
		default:
		}
		require.Empty(t, p.openingSlots, "the slow client has its turn no more")
		leave()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}
