package transport

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// departure says whether a call has left for its endpoint: what has left may have
// begun there, whatever the error is that the call ends with.
type departure struct{ left atomic.Bool }

type departureKey struct{}

// follow has the call that is made with a context noted.
func (d *departure) follow(ctx context.Context) context.Context {
	return context.WithValue(ctx, departureKey{}, d)
}

func (d *departure) reset()      { d.left.Store(false) }
func (d *departure) noted() bool { return d.left.Load() }

// departures tells calls that they have left.
type departures struct{}

var _ stats.Handler = departures{}

// TagRPC begins a try of a call. gRPC makes a further one only when the endpoint
// has refused the one before unseen, or it never left.
func (departures) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if d, ok := ctx.Value(departureKey{}).(*departure); ok {
		d.reset()
	}
	return ctx
}

// HandleRPC notes that the headers of a call are given to the connection.
func (departures) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if d, ok := ctx.Value(departureKey{}).(*departure); ok {
		d.left.Store(true)
	}
}

// TagConn does nothing.
func (departures) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (departures) HandleConn(context.Context, stats.ConnStats) {}
