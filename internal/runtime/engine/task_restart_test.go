package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Readers are told that a task begins anew where its events come again, once and
// before the first of them.
func TestOnlyRepeatedEventsAreMarked(t *testing.T) {
	const (
		token = checkpoint.EventMessage
		anew  = runtime.EventRestarted
		goOn  = runtime.EventContinued
		lost  = runtime.EventWorkerLost
	)
	type kinds []checkpoint.EventKind
	for name, c := range map[string]struct {
		attempts []kinds
		marks    []int // attempts of the marks
	}{
		"a first attempt":                         {[]kinds{{token, token}}, nil},
		"a second one":                            {[]kinds{{token}, {token, token}}, []int{2}},
		"a silent second one":                     {[]kinds{{token}, {}}, nil},
		"another worker":                          {[]kinds{{token, anew, token, token}}, []int{1}},
		"another worker after a silent one":       {[]kinds{{anew, token}}, nil},
		"a worker that is lost":                   {[]kinds{{token, lost, token, token}}, []int{1}},
		"a silent worker that is lost":            {[]kinds{{lost, token}}, []int{1}},
		"silent workers that are lost":            {[]kinds{{lost, lost}}, []int{1, 1}},
		"two more workers":                        {[]kinds{{token, anew, token, anew, token}}, []int{1, 1}},
		"two more workers, one of them silent":    {[]kinds{{token, anew, anew, token}}, []int{1}},
		"a worker that goes on":                   {[]kinds{{token}, {goOn, token}}, nil},
		"a worker that goes on and then is lost":  {[]kinds{{token}, {goOn, token, anew, token}}, []int{2}},
		"a gap says nothing of the task's events": {[]kinds{{token}, {runtime.EventGap}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			code := map[string]nodeFunc{"a": func(_ context.Context, call *nodeCall) pregel.Result {
				for _, kind := range c.attempts[call.Attempt-1] {
					call.Effects.EmitEvent(runtime.Emission{Kind: kind, Value: payload.JSON(`"x"`)})
				}
				if call.Attempt < len(c.attempts) {
					return failedResult("not yet")
				}
				return pregel.Result{Update: `{"x":2}`}
			}}
			spec := chainSpec("g", []graph.ChannelSpec{{Name: "x"}}, "a")
			spec.Nodes[0].Policy.Retry = []graph.RetrySpec{{InitialInterval: time.Millisecond, NoJitter: true}}
			w := newFixture(t, code, spec)
			w.runToStop("t", "g", `{"x":1}`)
			events, err := w.store.Events(t.Context(), "t", 0, 0)
			require.NoError(t, err)
			var marks []int
			for _, e := range events {
				if e.Phase == checkpoint.PhaseRestarted {
					require.False(t, e.Ephemeral)
					require.Equal(t, "a", e.Node)
					require.NotEmpty(t, e.Task)
					if slices.Contains(c.attempts[e.Attempt-1], lost) {
						require.Equal(t, "WorkerLost", e.Failure.Type)
					} else {
						require.Nil(t, e.Failure)
					}
					marks = append(marks, e.Attempt)
				}
			}
			require.Equal(t, c.marks, marks)
		})
	}
}
