package server

import (
	"context"
	"errors"
	"net"

	api "github.com/graphd-dev/graphd/graph"
	"github.com/graphd-dev/graphd/internal/transport"
)

// Embedding are the options of a server that is in the process of its user. They have no flags.
type Embedding struct {
	// InMemory takes the place of --listen: calls come over connections of Server.Dial, and of
	// ServeBeside.
	InMemory bool
	// Functions and Reducers are those of graphs in this process.
	Functions api.Functions
	Reducers  map[string]api.Reduce
}

// listenGRPC begins to listen for gRPC.
func (o *Options) listenGRPC() (net.Listener, error) {
	if o.InMemory {
		return transport.NewMemoryListener(), nil
	}
	return net.Listen("tcp", o.Listen) //nolint:noctx // has no effect on listening
}

// errNotInMemory refuses a connection to a server that has none in memory.
var errNotInMemory = errors.New("the server listens on an address: dial that")

// Dial makes a connection in memory, of a server with the option InMemory.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	l, ok := s.listener.(*transport.MemoryListener)
	if !ok {
		return nil, errNotInMemory
	}
	return l.Dial(ctx)
}

// ConnectProcess returns the connection of the program that has the server in it. inMemory is one
// of Dial. It is called once, before the server is drained.
func (s *Server) ConnectProcess(inMemory transport.ClientConn) transport.ClientConn {
	return s.grpc.ConnectProcess(inMemory)
}

// serveListener serves what the server listens on.
func (s *Server) serveListener() error {
	if l, ok := s.listener.(*transport.MemoryListener); ok {
		return s.grpc.ServeRelayed(l)
	}
	return s.grpc.Serve(s.listener)
}

// FindLack returns what the server lacks to serve an address that other machines reach, like "no TLS";
// "" = nothing.
func (s *Server) FindLack(at net.Addr) string { return s.findLack(at) }

// ServeBeside serves gRPC at a further listener, with the options of the server, until the server is
// drained: nil then. It closes the listener.
func (s *Server) ServeBeside(l net.Listener) error { return s.grpc.Serve(l) }
