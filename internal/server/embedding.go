package server

import (
	"net"

	api "github.com/graphd-dev/graphd/graph"
)

// Embedding are the options of a server that is in the process of its user. They have no flags.
type Embedding struct {
	// MemoryListener takes the place of --listen. It makes connections in memory, which no other process
	// reaches.
	MemoryListener net.Listener
	// Functions and Reducers are those of graphs in this process.
	Functions api.Functions
	Reducers  map[string]api.Reduce
}

// listenGRPC begins to listen for gRPC.
func (o *Options) listenGRPC() (net.Listener, error) {
	if o.MemoryListener != nil {
		return o.MemoryListener, nil
	}
	return net.Listen("tcp", o.Listen) //nolint:noctx // has no effect on listening
}
