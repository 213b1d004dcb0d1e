package commit

import "context"

// Tracer traces the calls of a store, and the lives of runs and questions.
type Tracer interface {
	// TraceStoreCall begins the span of a call of the store, and returns what ends it; nil when
	// ctx has no span that it belongs to.
	TraceStoreCall(ctx context.Context, name string) func(err error)
	// TraceChange reports a change that the store has accepted, made in the span of ctx.
	TraceChange(ctx context.Context, t *Tx)
}
