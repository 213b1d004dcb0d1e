package server

import (
	"context"
	"net"

	"google.golang.org/grpc/test/bufconn"

	api "github.com/graphd-dev/graphd/graph"
)

// Embedding are the options of a server that is in the process of its user. They have no flags.
type Embedding struct {
	// MemoryListener takes the place of --listen. nil = the server is a process of its own.
	MemoryListener *MemoryListener
	// Functions and Reducers are those of graphs in this process.
	Functions api.Functions
	Reducers  map[string]api.Reduce
}

// pipeBytes is what each direction of a connection in memory holds until it is read.
const pipeBytes = 1 << 20

// MemoryListener takes connections that this process makes to its own server. They need no TLS, and
// their caller is the process itself.
type MemoryListener struct{ *bufconn.Listener }

// NewMemoryListener makes a listener.
func NewMemoryListener() *MemoryListener { return &MemoryListener{bufconn.Listen(pipeBytes)} }

// Accept waits for a connection.
func (l *MemoryListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return ownConn{conn}, err
}

// Dial makes a connection. The address does not matter.
func (l *MemoryListener) Dial(ctx context.Context, _ string) (net.Conn, error) {
	return l.DialContext(ctx)
}

// ownConn is a connection of this process, see handshake.ProcessInfo.
type ownConn struct{ net.Conn }

// IsOfProcess marks it.
func (ownConn) IsOfProcess() {}

// listenGRPC begins to listen for gRPC.
func (o *Options) listenGRPC() (net.Listener, error) {
	if o.MemoryListener != nil {
		return o.MemoryListener, nil
	}
	return net.Listen("tcp", o.Listen) //nolint:noctx // has no effect on listening
}

// ServeBeside serves gRPC at a further listener, with the options of the server, until the server is
// drained: nil then. It closes the listener. The error is an *ExposureError, or that of the
// listener.
func (s *Server) ServeBeside(l net.Listener) error {
	if lacking := s.findLack(l.Addr()); lacking != "" {
		_ = l.Close() // it is not used
		return &ExposureError{Address: l.Addr().String(), Lacking: lacking}
	}
	return s.grpc.Serve(l)
}
