package flow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// Large requests that are complete hold more than their part until each of them is
// refused. Small requests are served meanwhile, and have an eighth of the limit.
func TestSmallRequestsAreServedBesideLargeOnesThatAreComplete(t *testing.T) {
	const maxBytes, largeBytes = 4 << 20, 256 << 10
	q := NewRequestTracker(RequestLimits{MaxBytes: maxBytes, ArrivalTimeout: time.Hour}, zap.NewNop())
	t.Cleanup(func() { q.lateTimer.Stop() })
	c := newInboundConn(nil, q)
	id := uint32(1)
	completeRequest := func(bytes int64) *TrackedRequest {
		r := addTestRequest(t, q, c, id)
		id += 2
		r.countReceived(bytes)
		r.markComplete()
		return r
	}
	var large []*TrackedRequest
	for range 15 { // complete before the first of them is decoded
		large = append(large, completeRequest(largeBytes))
	}

	one := completeRequest(100)
	require.NoError(t, one.countDecoded(100, 200), "it waits for nothing that large requests hold")
	require.Error(t, large[0].countDecoded(largeBytes, largeBytes))

	var small []*TrackedRequest
	for range maxBytes / 8 / smallConnectionBytes {
		r := completeRequest(smallConnectionBytes)
		if err := r.countDecoded(smallConnectionBytes, smallConnectionBytes); err != nil {
			break
		}
		small = append(small, r)
	}
	require.Len(t, small, maxBytes/8/smallConnectionBytes-1, "the small ones have an eighth, of which one holds 200 bytes")
	require.Error(t, completeRequest(smallConnectionBytes).countDecoded(smallConnectionBytes, smallConnectionBytes))
	small[0].ReleaseAnswered()
	require.NoError(t, completeRequest(smallConnectionBytes).countDecoded(smallConnectionBytes, smallConnectionBytes))

	for _, r := range c.requestsByStream {
		r.endCall()
	}
	require.Zero(t, q.smallBytes)
	require.Zero(t, q.heldBytes)
}
