package ownership

import (
	"context"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// Tracer traces the turns of runs. A turn is what a server does for a run from taking its
// thread until it lets go of it.
type Tracer interface {
	// BeginTurn begins the span of a turn, inside the call of ctx if there is one.
	BeginTurn(ctx context.Context) Turn
}

// Turn is the span of a turn.
type Turn interface {
	// Within returns ctx with the span, for the work inside it.
	Within(ctx context.Context) context.Context
	// IDs returns the ids of the trace and of the span, in hexadecimal digits.
	IDs() (trace, span string)
	// EndTurn ends the span. ctx may be over. state is the state of the run, "lost", or "left" for
	// one that another server goes on with at once. run is nil when the thread was not taken.
	EndTurn(ctx context.Context, run *checkpoint.Run, state string)
}

// beginTurn begins the span of the turn, if turns are traced, and returns ctx with it.
func (s *session) beginTurn(ctx context.Context) context.Context {
	tracer := s.owner.opts.Tracer
	if tracer == nil {
		return ctx
	}
	s.turn = tracer.BeginTurn(ctx)
	return s.turn.Within(ctx)
}

// endTurn ends the span of the turn, if turns are traced.
func (s *session) endTurn(run *checkpoint.Run, state string) {
	if s.turn != nil {
		s.turn.EndTurn(s.stop.storeCtx, run, state)
	}
}

// traceWork puts the work of the session, and its lines in the log, into the span of its turn.
// Nothing of the run is running yet.
func (s *session) traceWork() {
	if s.turn == nil {
		return
	}
	trace, span := s.turn.IDs()
	s.thread.log = s.thread.log.With(zap.String("trace_id", trace), zap.String("span_id", span))
	work, store := s.turn.Within(s.stop.workCtx), s.turn.Within(s.stop.storeCtx)
	s.stop.workCtx, s.stop.storeCtx, s.loopThread.StoreCtx = work, store, store //nolint:fatcontext // once in a session
}
