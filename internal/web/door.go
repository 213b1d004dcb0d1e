package web

import (
	"context"
	"net"
	"net/http"

	"google.golang.org/grpc"
)

// DoorOptions make a Door. All fields but Callers must be set.
type DoorOptions struct {
	// Listener is what the gRPC server accepts connections from.
	Listener *Listener
	// MaxMessageBytes bounds a request, MaxIncoming the memory of all requests that are read, and
	// MaxUnread all answers that clients have not read.
	MaxMessageBytes int
	MaxIncoming     int
	MaxUnread       int
	// Callers say which parts of a request name its caller, besides its token.
	Callers CallerParts
}

// Door lets another API over HTTP call the services of the server in this process, as the client of
// the HTTP connection: identity, roles, limits and audit are those of gRPC, and the calls end with
// the HTTP connection. A stream goes over a gRPC connection in memory.
type Door struct {
	most     int64
	callers  CallerParts
	incoming memory
	unread   memory
	conns    *connections
}

// NewDoor makes a Door.
func NewDoor(o DoorOptions) *Door {
	return &Door{
		most: int64(o.MaxMessageBytes) + headroomBytes, callers: o.Callers,
		incoming: memory{most: int64(o.MaxIncoming)}, unread: memory{most: int64(o.MaxUnread)},
		conns: &connections{listener: o.Listener, maxMessageBytes: o.MaxMessageBytes, open: map[net.Conn]*connection{}},
	}
}

// AddConnection must be told of HTTP connections, as http.Server.ConnContext.
func (d *Door) AddConnection(ctx context.Context, conn net.Conn) context.Context {
	return d.conns.addConnection(ctx, conn)
}

// TrackState must be told of the states of HTTP connections, as http.Server.ConnState.
func (d *Door) TrackState(conn net.Conn, state http.ConnState) { d.conns.trackState(conn, state) }

// OpenConnection returns the connection for the calls of a request, and the context that they are
// made with. The error is a gRPC status, or says that the client has left.
func (d *Door) OpenConnection(r *http.Request) (context.Context, grpc.ClientConnInterface, error) {
	ctx, err := forwardHeaders(r, &d.callers)
	if err != nil {
		return nil, nil, err
	}
	conn, err := d.conns.openConnection(r)
	return ctx, conn, err
}

// ReadBody reads the body of a request, whose memory is held until release is called. The error is
// a gRPC status.
func (d *Door) ReadBody(r *http.Request) (body []byte, release func(), err error) {
	held := &reserved{of: &d.incoming}
	body, err = readBody(r, d.most, held)
	if err != nil {
		held.release()
		return nil, nil, err
	}
	return body, held.release, nil
}

// HoldUnread holds n bytes of an answer until release is called. The error is a gRPC status.
func (d *Door) HoldUnread(n int) (release func(), err error) {
	held := &reserved{of: &d.unread}
	if !held.grow(int64(n)) {
		return nil, newUnreadError()
	}
	return held.release, nil
}
