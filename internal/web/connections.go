package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connections keeps the gRPC connection of each open HTTP connection. It is made with the first
// call.
type connections struct {
	listener        *Listener
	maxMessageBytes int

	mu   sync.Mutex
	open map[net.Conn]*connection
}

// connection is an HTTP connection. Its requests have it in their context, because an address may
// be that of another client before the last request of the first one has ended.
type connection struct {
	address net.Addr

	mu       sync.Mutex
	inMemory *grpc.ClientConn         // nil = none was made yet
	calls    grpc.ClientConnInterface // takes it for what is not unary
	isClosed bool
}

type connectionKey struct{}

// errConnectionClosed tells that a browser has left before its call began.
var errConnectionClosed = errors.New("the HTTP connection is closed")

// addConnection adds an HTTP connection to the context of its requests, see
// http.Server.ConnContext.
func (c *connections) addConnection(ctx context.Context, conn net.Conn) context.Context {
	added := &connection{address: conn.RemoteAddr()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = added
	return context.WithValue(ctx, connectionKey{}, added)
}

// trackState follows what happens to HTTP connections, see http.Server.ConnState.
func (c *connections) trackState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateClosed, http.StateHijacked:
		if closed := c.removeConnection(conn); closed != nil {
			closed.close()
		}
	case http.StateNew, http.StateActive, http.StateIdle:
	}
}

func (c *connections) removeConnection(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[conn]
	delete(c.open, conn)
	return known
}

// close ends the calls of a connection.
func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
	if c.inMemory != nil {
		_ = c.inMemory.Close() // the only error is that it is closed
	}
}

// openConnection returns the connection for the calls of a request, and makes it before the first
// one. The error is errConnectionClosed.
func (c *connections) openConnection(r *http.Request) (grpc.ClientConnInterface, error) {
	known, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		return nil, errConnectionClosed
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	switch {
	case known.isClosed:
		return nil, errConnectionClosed
	case known.calls != nil:
		return known.calls, nil
	}
	from := browser{address: known.address, tls: r.TLS}
	inMemory, err := grpc.NewClient("passthrough:///memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.listener.connectBrowser(ctx, from) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // inside the process
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.maxMessageBytes+headroomBytes), grpc.MaxCallSendMsgSize(c.maxMessageBytes+headroomBytes)),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), // a call is made once, as the browser makes it
		grpc.WithReadBufferSize(0), grpc.WithNoProxy(),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server in this process: %w", err)
	}
	known.inMemory, known.calls = inMemory, inMemory
	if s := c.listener.server; s != nil {
		known.calls = s.ConnectRelayed(from.address, from.tls, inMemory)
	}
	return known.calls, nil
}

// headroomBytes is how much more than its value a message may have.
const headroomBytes = 64 << 10
