package worker_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker"
)

// brokenRun panics at whatever it is told.
type brokenRun struct{ run }

func (*brokenRun) Emit(runtime.Emission) { panic("a defect in Emit") }
func (*brokenRun) Unassigned(string)     { panic("a defect in Unassigned") }
func (*brokenRun) Strand()               { panic("a defect in Strand") }
func (*brokenRun) HandOver()             { panic("a defect in HandOver") }

func (*brokenRun) Call(context.Context, runtime.GraphCall) (runtime.CallResult, error) {
	panic("a defect in Call")
}

// TestARunThatPanicsLeavesTheHubAlone has a run panic on every goroutine of the
// hub that tells it something.
func TestARunThatPanicsLeavesTheHubAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		broken := &brokenRun{}
		given := task("t1", &broken.run)
		given.Effects, given.Host = broken, broken
		r := execute(t.Context(), h, given)
		synctest.Wait() // it is told that it waits for a worker

		s := open(t, h, hello("w1", 2))
		a := next(t, s)
		s.Emit(a.Token, []runtime.Emission{{Kind: checkpoint.EventCustom, Value: "1"}}, 1)
		synctest.Wait()
		_, err := h.Call(t.Context(), a.Token, runtime.GraphCall{Graph: "g"})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInternal})
		var refused *runtime.Error
		require.ErrorAs(t, err, &refused)
		require.NotContains(t, refused.Message, "a defect")
		s.Emit(a.Token, []runtime.Emission{{Kind: checkpoint.EventCustom, Value: "2"}}, 0)
		complete(t, h, a, "1")
		require.EqualValues(t, "1", (<-r).Update)

		other := execute(t.Context(), h, task("t2", &run{}))
		complete(t, h, next(t, s), "2")
		require.EqualValues(t, "2", (<-other).Update)
	})
}
