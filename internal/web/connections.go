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

	mu       sync.Mutex
	byClient map[string]*connection // by the address of the client
}

// connection is an HTTP connection that is open.
type connection struct {
	address net.Addr
	calls   *grpc.ClientConn // nil = none was made yet
}

// errConnectionClosed tells that a browser has left before its call began.
var errConnectionClosed = errors.New("the HTTP connection is closed")

// trackState follows what happens to HTTP connections, see http.Server.ConnState.
func (c *connections) trackState(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.byClient[conn.RemoteAddr().String()] = &connection{address: conn.RemoteAddr()}
	case http.StateClosed, http.StateHijacked:
		if calls := c.removeClient(conn.RemoteAddr().String()); calls != nil {
			_ = calls.Close() // the only error is that it is closed
		}
	case http.StateActive, http.StateIdle:
	}
}

func (c *connections) removeClient(client string) *grpc.ClientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.byClient[client]
	delete(c.byClient, client)
	if known == nil {
		return nil
	}
	return known.calls
}

// openConnection returns the gRPC connection for the calls of a request, and makes it before the
// first one. The error is errConnectionClosed.
func (c *connections) openConnection(r *http.Request) (grpc.ClientConnInterface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.byClient[r.RemoteAddr]
	if known == nil {
		return nil, errConnectionClosed
	}
	if known.calls != nil {
		return known.calls, nil
	}
	from := browser{address: known.address, tls: r.TLS}
	calls, err := grpc.NewClient("passthrough:///memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.listener.connectBrowser(ctx, from) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // inside the process
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.maxMessageBytes+headroomBytes), grpc.MaxCallSendMsgSize(c.maxMessageBytes+headroomBytes)),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), // a call is made once, as the browser makes it
		grpc.WithReadBufferSize(0), grpc.WithNoProxy(),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the server in this process: %w", err)
	}
	known.calls = calls
	return calls, nil
}

// headroomBytes is how much more than its value a message may have.
const headroomBytes = 64 << 10
