package transport

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

// recording is a connection from which given bytes come.
type recording struct {
	net.Conn

	from io.Reader
}

func (w recording) Read(into []byte) (int, error) { return w.from.Read(into) }

// Whatever the pieces in which frames come and are read, the bytes of each call
// are counted, and its end is seen after its last byte.
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
		q := newRequests(Options{MaxIncoming: 1 << 20, RequestPatience: 1 << 40, Log: zap.NewNop()})
		c := newInbound(recording{from: bytes.NewReader(all)}, q)
		one, three := arriving(t, q, c, 1), arriving(t, q, c, 3)
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
		require.Equal(t, int64(17234), one.held)
		require.Equal(t, int64(5101), three.held)
		require.Equal(t, one.held+three.held, q.held)
		require.Zero(t, q.pending)
		one.end()
		three.end()
		require.Zero(t, q.held)
		require.Empty(t, c.calls)
		q.clock.Stop()
	}
}

// arriving registers a call as begin does.
func arriving(t *testing.T, q *requests, c *inbound, id uint32) *request {
	t.Helper()
	_, cancel := context.WithCancel(t.Context())
	r := &request{of: q, on: c, id: id, cancel: cancel}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open++
	c.calls[id] = r
	q.wait(r)
	return r
}
