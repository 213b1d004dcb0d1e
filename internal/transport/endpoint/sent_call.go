package endpoint

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// sentMark records whether a call was sent to its endpoint. A call that was sent
// may have begun there, whatever error it ends with.
type sentMark struct{ isSet atomic.Bool }

type sentMarkKey struct{}

// withMark returns a context with which a call sets the mark when it is sent.
func (s *sentMark) withMark(ctx context.Context) context.Context {
	return context.WithValue(ctx, sentMarkKey{}, s)
}

func (s *sentMark) clearMark()    { s.isSet.Store(false) }
func (s *sentMark) wasSent() bool { return s.isSet.Load() }

// sentMarker sets the marks of calls that are sent.
type sentMarker struct{}

var _ stats.Handler = sentMarker{}

// TagRPC begins a try of a call. gRPC makes a further try only when the endpoint
// has not processed the earlier try, or that was never sent.
func (sentMarker) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if d, ok := ctx.Value(sentMarkKey{}).(*sentMark); ok {
		d.clearMark()
	}
	return ctx
}

// HandleRPC sets the mark when the headers of a call are given to the connection.
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
