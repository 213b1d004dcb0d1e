package flow

import (
	"bufio"
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// inboundConn is a connection that counts the bytes that its client sends by call.
// Each read ends at the end of a frame or of its header, because gRPC handles what
// it has before it reads on.
type inboundConn struct {
	net.Conn

	requests *RequestTracker
	reader   *bufio.Reader

	currentPart      streamPart
	remaining        int // bytes of the part
	header           [frameHeaderSize]byte
	lastFrame        http2.FrameHeader          // of the last frame
	newestStream     uint32                     // call whose headers came last
	isNewestEnded    bool                       // nothing follows its headers
	requestsByStream map[uint32]*TrackedRequest // guarded by RequestTracker.mu
}

// streamPart is the part of the byte stream that is being read.
type streamPart int

const (
	partPreface streamPart = iota
	partHeader
	partPayload
)

// readBufferSize is the buffer of a connection, also while idle. Larger reads
// bypass it.
const readBufferSize = 8 << 10

// frameHeaderSize is the number of bytes in the header of a frame.
const frameHeaderSize = 9

func newInboundConn(conn net.Conn, of *RequestTracker) *inboundConn {
	return &inboundConn{
		Conn: conn, requests: of, reader: bufio.NewReaderSize(conn, readBufferSize), remaining: len(http2.ClientPreface),
		requestsByStream: make(map[uint32]*TrackedRequest),
	}
}

// Read reads at most to the end of the current part.
func (c *inboundConn) Read(into []byte) (int, error) {
	n, err := c.reader.Read(into[:min(len(into), c.remaining)])
	if c.currentPart == partHeader {
		copy(c.header[frameHeaderSize-c.remaining:], into[:n])
	}
	if c.remaining -= n; c.remaining == 0 && n > 0 {
		c.finishPart()
	}
	return n, err
}

// finishPart handles the part that was read and begins the next part.
func (c *inboundConn) finishPart() {
	if c.currentPart == partHeader {
		c.lastFrame = http2.FrameHeader{
			Length: uint32(c.header[0])<<16 | uint32(c.header[1])<<8 | uint32(c.header[2]),
			Type:   http2.FrameType(c.header[3]), Flags: http2.Flags(c.header[4]),
			StreamID: binary.BigEndian.Uint32(c.header[5:]) & (1<<31 - 1),
		}
		if c.beginFrame(); c.lastFrame.Length > 0 {
			c.currentPart, c.remaining = partPayload, int(c.lastFrame.Length)
			return
		}
	}
	if c.currentPart != partPreface {
		c.endFrame()
	}
	c.currentPart, c.remaining = partHeader, frameHeaderSize
}

// beginFrame counts a frame whose header was read: gRPC allocates all of it.
func (c *inboundConn) beginFrame() {
	if c.lastFrame.Type == http2.FrameHeaders {
		c.newestStream, c.isNewestEnded = c.lastFrame.StreamID, c.lastFrame.Flags.Has(http2.FlagHeadersEndStream)
	}
	if c.lastFrame.Type == http2.FrameData && c.lastFrame.Length > 0 {
		if r := c.currentRequest(); r != nil {
			r.countReceived(int64(c.lastFrame.Length))
		}
	}
}

// endFrame records the end of a request.
func (c *inboundConn) endFrame() {
	if c.lastFrame.Type == http2.FrameData && c.lastFrame.Flags.Has(http2.FlagDataEndStream) {
		if r := c.currentRequest(); r != nil {
			r.markComplete()
		}
	}
}

func (c *inboundConn) currentRequest() *TrackedRequest {
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	return c.requestsByStream[c.lastFrame.StreamID]
}

// countingCredentials make an inboundConn of every connection, inside its
// encryption.
type countingCredentials struct {
	credentials.TransportCredentials

	requests *RequestTracker
}

// WrapCredentials returns credentials whose connections count the bytes that
// arrive, inside their encryption.
func (rt *RequestTracker) WrapCredentials(c credentials.TransportCredentials) credentials.TransportCredentials {
	return countingCredentials{c, rt}
}

// ServerHandshake makes the handshake of a connection and wraps the connection.
func (c countingCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	known, ok := raw.(*connection)
	if err != nil || !ok {
		return conn, info, err
	}
	known.inbound = newInboundConn(conn, c.requests)
	return known.inbound, info, nil
}

// Clone makes a copy.
func (c countingCredentials) Clone() credentials.TransportCredentials {
	return countingCredentials{c.TransportCredentials.Clone(), c.requests}
}
