package superstep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

func TestWithoutATracerNothingIsAllocated(t *testing.T) {
	fr := &frame{env: &Env{}}
	at := attempt{frame: fr, outcome: outcome{task: &pregel.Task{}}}
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		span := fr.traceStep(ctx)
		_ = within(ctx, span)
		_ = at.traceAttempt(ctx)
		_ = carrierOf(at.span)
		at.endTrace()
	}))
}
