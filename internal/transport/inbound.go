package transport

import (
	"bufio"
	"encoding/binary"
	"net"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/credentials"
)

// inbound is a connection that sees which calls the bytes belong to that its
// client sends. Each read ends where a frame, or its header, ends: what gRPC was
// given it has looked at before it reads on.
type inbound struct {
	net.Conn

	of   *requests
	from *bufio.Reader

	part   part
	left   int // bytes of the part
	header [frameHeader]byte
	frame  http2.FrameHeader   // the last one
	newest uint32              // call whose headers came last
	ended  bool                // nothing follows those
	calls  map[uint32]*request // guarded by requests.mu
}

// part is what a connection is in the middle of.
type part int

const (
	inPreface part = iota
	inHeader
	inPayload
)

// frameHeader is how many bytes the header of a frame has.
const frameHeader = 9

func newInbound(conn net.Conn, of *requests) *inbound {
	return &inbound{
		Conn: conn, of: of, from: bufio.NewReaderSize(conn, readBuffer), left: len(http2.ClientPreface),
		calls: make(map[uint32]*request),
	}
}

// Read reads no further than the end of the present part.
func (c *inbound) Read(into []byte) (int, error) {
	n, err := c.from.Read(into[:min(len(into), c.left)])
	if c.part == inHeader {
		copy(c.header[frameHeader-c.left:], into[:n])
	}
	if c.left -= n; c.left == 0 && n > 0 {
		c.next()
	}
	return n, err
}

// next looks at the part that was read, and turns to what follows.
func (c *inbound) next() {
	if c.part == inHeader {
		c.frame = http2.FrameHeader{
			Length: uint32(c.header[0])<<16 | uint32(c.header[1])<<8 | uint32(c.header[2]),
			Type:   http2.FrameType(c.header[3]), Flags: http2.Flags(c.header[4]),
			StreamID: binary.BigEndian.Uint32(c.header[5:]) & (1<<31 - 1),
		}
		if c.begin(); c.frame.Length > 0 {
			c.part, c.left = inPayload, int(c.frame.Length)
			return
		}
	}
	if c.part != inPreface {
		c.end()
	}
	c.part, c.left = inHeader, frameHeader
}

// begin counts a frame whose header was read: gRPC makes room for all of it.
func (c *inbound) begin() {
	if c.frame.Type == http2.FrameHeaders {
		c.newest, c.ended = c.frame.StreamID, c.frame.Flags.Has(http2.FlagHeadersEndStream)
	}
	if c.frame.Type == http2.FrameData && c.frame.Length > 0 {
		if r := c.call(); r != nil {
			r.take(int64(c.frame.Length))
		}
	}
}

// end notes that a frame was read.
func (c *inbound) end() {
	if c.frame.Type == http2.FrameData && c.frame.Flags.Has(http2.FlagDataEndStream) {
		if r := c.call(); r != nil {
			r.whole()
		}
	}
}

func (c *inbound) call() *request {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.calls[c.frame.StreamID]
}

// watched are credentials whose connections are seen into, behind what they
// encrypt.
type watched struct {
	credentials.TransportCredentials

	of *requests
}

// ServerHandshake takes in a connection.
func (w watched) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ServerHandshake(raw)
	known, ok := raw.(*connection)
	if err != nil || !ok {
		return conn, info, err
	}
	known.inbound = newInbound(conn, w.of)
	return known.inbound, info, nil
}

// Clone makes a copy.
func (w watched) Clone() credentials.TransportCredentials {
	return watched{w.TransportCredentials.Clone(), w.of}
}
