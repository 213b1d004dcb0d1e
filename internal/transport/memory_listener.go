package transport

import (
	"context"
	"net"

	"google.golang.org/grpc/test/bufconn"
)

// memoryPipeBytes is what each direction of a connection in memory holds until it is read.
const memoryPipeBytes = 1 << 20

// MemoryListener takes connections that this process makes to its own server. They need no TLS, and
// their caller is the process itself, see handshake.ProcessInfo.
type MemoryListener struct{ pipe *bufconn.Listener }

// NewMemoryListener makes a listener.
func NewMemoryListener() *MemoryListener { return &MemoryListener{bufconn.Listen(memoryPipeBytes)} }

// Accept waits for a connection.
func (l *MemoryListener) Accept() (net.Conn, error) {
	conn, err := l.pipe.Accept()
	return ownConn{conn}, err
}

// Dial makes a connection.
func (l *MemoryListener) Dial(ctx context.Context) (net.Conn, error) { return l.pipe.DialContext(ctx) }

// Close ends Accept.
func (l *MemoryListener) Close() error { return l.pipe.Close() }

// Addr returns an address that no other process can dial.
func (l *MemoryListener) Addr() net.Addr { return l.pipe.Addr() }

// ownConn is a connection of this process.
type ownConn struct{ net.Conn }

// IsOfProcess marks it.
func (ownConn) IsOfProcess() {}
