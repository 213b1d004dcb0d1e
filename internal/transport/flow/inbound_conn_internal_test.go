package flow

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/net/http2"
)

// replayConn is a connection that returns given bytes.
type replayConn struct {
	net.Conn

	reader io.Reader
}

func (r replayConn) Read(into []byte) (int, error) { return r.reader.Read(into) }

// The bytes of each call are counted, and its end is seen after its last byte,
// however frames are split into writes and reads.
func TestInboundCountsTheBytesOfCalls(t *testing.T) {
	var text bytes.Buffer
	text.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&text, nil)
	require.NoError(t, f.WriteSettings())
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("one"), EndHeaders: true}))
	require.NoError(t, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte("three"), EndHeaders: true}))
	require.NoError(t, f.WriteData(1, false, make([]byte, 1000)))
	require.NoError(t, f.WriteDataPadded(3, false, make([]byte, 5000), make([]byte, 100)))
	require.NoError(t, f.WriteData(5, false, make([]byte, 300))) // of no call
	require.NoError(t, f.WritePing(false, [8]byte{}))
	require.NoError(t, f.WriteData(1, false, make([]byte, 234)))
	require.NoError(t, f.WriteData(3, true, nil))
	require.NoError(t, f.WriteData(1, true, make([]byte, 16000)))
	all := text.Bytes()

	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		q := NewRequestTracker(RequestLimits{MaxBytes: 1 << 20, ArrivalTimeout: 1 << 40}, zap.NewNop())
		c := newInboundConn(replayConn{reader: bytes.NewReader(all)}, q)
		one, three := addTestRequest(t, q, c, 1), addTestRequest(t, q, c, 3)
		read, ended := 0, 0
		for read < len(all) {
			n, err := c.Read(make([]byte, 1+draw.IntN(3000)))
			require.NoError(t, err)
			read += n
			q.mu.Lock()
			ended = 2 - len(q.arriving)
			if read < len(all) {
				require.Contains(t, q.arriving, one, "the last frame is not there yet")
			}
			q.mu.Unlock()
		}
		require.Equal(t, 2, ended)
		require.Equal(t, int64(17234), one.heldBytes)
		require.Equal(t, int64(5101), three.heldBytes)
		require.Equal(t, one.heldBytes+three.heldBytes, q.heldBytes)
		require.Zero(t, q.arrivingBytes)
		one.endCall()
		three.endCall()
		require.Zero(t, q.heldBytes)
		require.Empty(t, c.requestsByStream)
		q.lateTimer.Stop()
	}
}

// addTestRequest registers a call as BeginCall does.
func addTestRequest(t *testing.T, q *RequestTracker, c *inboundConn, id uint32) *TrackedRequest {
	t.Helper()
	_, cancel := context.WithCancel(t.Context())
	r := &TrackedRequest{tracker: q, conn: c, id: id, cancel: cancel}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.openCalls++
	c.requestsByStream[id] = r
	q.addArriving(r)
	return r
}
