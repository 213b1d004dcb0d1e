package transport

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// streams is what all open streams share: when they have to end and how many
// there may be.
type streams struct {
	heartbeat time.Duration
	stall     time.Duration
	max       int64 // 0 = any number
	maxBytes  int   // of one message
	life      time.Duration
	draining  chan struct{}
	open      atomic.Int64
}

// enter counts a stream in. The caller must leave.
func (s *streams) enter() error {
	if s.isDraining() {
		return draining()
	}
	if n := s.open.Add(1); s.max > 0 && n > s.max {
		s.open.Add(-1)
		return runtime.Errorf(runtime.ReasonTooManySubscribers, "the server has %d open streams, its limit", s.max)
	}
	return nil
}

func (s *streams) leave() { s.open.Add(-1) }

func (s *streams) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

func draining() error {
	return runtime.Errorf(runtime.ReasonServerDraining, "the server is going down; try another one")
}

// lifetime is ctx that also ends, with errDraining as its cause, when the
// server drains or the connection has grown so old that it is about to be
// closed: a stream must end in order before the transport cuts it.
func (s *streams) lifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	life, end := context.WithCancelCause(ctx)
	release := func() { end(context.Canceled) }
	go func() {
		var old <-chan time.Time
		if born, ok := ctx.Value(bornKey{}).(time.Time); ok && s.life > 0 {
			timer := time.NewTimer(time.Until(born.Add(s.life)))
			defer timer.Stop()
			old = timer.C
		}
		select {
		case <-s.draining:
			end(errDraining)
		case <-old:
			end(errDraining)
		case <-life.Done():
		}
	}()
	return life, release
}

// turn is one wait for events: it ends with errQuiet as its cause when a
// heartbeat is due.
func (s *streams) turn(life context.Context, last time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadlineCause(life, last.Add(s.heartbeat), errQuiet)
}

type bornKey struct{}

// births remembers when a connection was made; its streams inherit that.
type births struct{}

// TagConn notes the time.
func (births) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, bornKey{}, time.Now())
}

// HandleConn does nothing.
func (births) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC does nothing.
func (births) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (births) HandleRPC(context.Context, stats.RPCStats) {}
