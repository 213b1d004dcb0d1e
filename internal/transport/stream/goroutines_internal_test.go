package stream

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// TestAStreamNeedsNoGoroutineBesideItsCall opens many streams that fit into the
// buffers of gRPC, and counts goroutines.
func TestAStreamNeedsNoGoroutineBesideItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams = 50
		th := newFakeThread()
		before := runtime.NumGoroutine()
		for range streams {
			openStream(t, th, func(p *Streamer, stream EventStream) error {
				p.DirectBytes = MaxDirectBytes
				return newWatchCall(&graphdv1.WatchRequest{Follow: true})(p, stream)
			})
		}
		synctest.Wait()
		th.appendEvents(newUpdateEvent("a"), newUpdateEvent("b"))
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine()-before, streams+streams/5, "some belong to others")
	})
}
