package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// pipeBytes is what each direction of a connection in memory holds until it is read.
const pipeBytes = 64 << 10

// Server is the gRPC server in this process.
type Server interface {
	// ConnectRelayed returns the connection of a client, with its TLS, nil = plain text. inMemory is
	// one that Accept has returned.
	ConnectRelayed(client net.Addr, secured *tls.ConnectionState, inMemory grpc.ClientConnInterface) grpc.ClientConnInterface
}

// Listener hands connections in memory to a gRPC server.
type Listener struct {
	server    Server // nil = all calls take a connection in memory
	dials     chan dial
	closed    chan struct{}
	closeOnce sync.Once
}

// NewListener makes a Listener.
func NewListener() *Listener {
	return &Listener{dials: make(chan dial), closed: make(chan struct{})}
}

// SetServer sets the server that answers unary calls without a connection in memory. It is called
// before the first request is served.
func (l *Listener) SetServer(s Server) { l.server = s }

// Accept waits for a connection. The error is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		select {
		case d := <-l.dials:
			if conn, err := d.pipe.Accept(); err == nil {
				return &relayedConn{Conn: conn, browser: d.from}, nil
			}
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// Close ends Accept. Connections stay.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address of the listener, which no client can dial.
func (*Listener) Addr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

// Network returns the name of a network of which there is one in each process.
func (memoryAddr) Network() string { return "memory" }

// String returns the same: there are no addresses.
func (memoryAddr) String() string { return "memory" }

// browser is the other side of an HTTP connection.
type browser struct {
	address net.Addr
	tls     *tls.ConnectionState // nil = plain text
}

// dial is a browser's wish for a connection.
type dial struct {
	pipe *bufconn.Listener // makes this one connection
	from browser
}

// connectBrowser makes a connection for a browser and returns the end of the gRPC client.
func (l *Listener) connectBrowser(ctx context.Context, from browser) (net.Conn, error) {
	d := dial{pipe: bufconn.Listen(pipeBytes), from: from}
	select {
	case l.dials <- d:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-l.closed:
		return nil, net.ErrClosed
	}
	client, err := d.pipe.DialContext(ctx)
	if err != nil {
		return nil, errors.Join(err, d.pipe.Close()) // ends Accept
	}
	return client, nil
}

// relayedConn is the server's end of a connection in memory.
type relayedConn struct {
	net.Conn

	browser browser
}

// RemoteAddr returns the address of the browser.
func (c *relayedConn) RemoteAddr() net.Addr { return c.browser.address }

// RelayedTLS returns the TLS of the browser's connection, nil = plain text. The handshake is
// made already.
func (c *relayedConn) RelayedTLS() *tls.ConnectionState { return c.browser.tls }
