package endpoint

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sentMark says whether a call has left for its endpoint: what has left may have
// begun there, whatever the error is that the call ends with.
type sentMark struct{ isSet atomic.Bool }

type sentMarkKey struct{}

// withMark has the call that is made with a context noted.
func (d *sentMark) withMark(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentMarkKey{}, d)
}

func (d *sentMark) clearMark()    { d.isSet.Store(false) }
func (d *sentMark) wasSent() bool { return d.isSet.Load() }

// sentMarker tells calls that they have left.
type sentMarker struct{}

var _ stats.Handler = sentMarker{}

// TagRPC begins a try of a call. gRPC makes a further one only when the endpoint
// has refused the one before unseen, or it never left.
func (sentMarker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if d, ok := ctx.Value(sentMarkKey{}).(*sentMark); ok {
		d.clearMark()
	}
	return ctx
}

// HandleRPC notes that the headers of a call are given to the connection.
func (sentMarker) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if d, ok := ctx.Value(sentMarkKey{}).(*sentMark); ok {
		d.isSet.Store(true)
	}
}

// TagConn does nothing.
func (sentMarker) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (sentMarker) HandleConn(context.Context, stats.ConnStats) {}
