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

// panickingRun panics at whatever it is told.
type panickingRun struct{ taskRun }

func (*panickingRun) EmitEvent(runtime.Emission) { panic("a defect in Emit") }

func (*panickingRun) ReportUnassigned(string) { panic("a defect in Unassigned") }

func (*panickingRun) NotifyStranded() { panic("a defect in Strand") }

func (*panickingRun) HandOff() { panic("a defect in HandOver") }

func (*panickingRun) CallGraph(context.Context, runtime.GraphCall) (runtime.CallResult, error) {
	panic("a defect in Call")
}

// TestARunThatPanicsLeavesTheHubAlone has a run panic on every goroutine of the
// hub that tells it something.
func TestARunThatPanicsLeavesTheHubAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := worker.New(worker.Options{})
		broken := &panickingRun{}
		given := newTask("t1", &broken.taskRun)
		given.Effects, given.Host = broken, broken
		r := executeAsync(t.Context(), h, given)
		synctest.Wait() // it is told that it waits for a worker

		s := openSession(t, h, newHello("w1", 2))
		a := nextAssignment(t, s)
		s.HandleEvents(a.Token, []runtime.Emission{{Kind: checkpoint.EventCustom, Value: "1"}}, 1)
		synctest.Wait()
		_, err := h.CallGraph(t.Context(), a.Token, runtime.GraphCall{Graph: "g"})
		require.ErrorIs(t, err, &runtime.Error{Reason: runtime.ReasonInternal})
		var refused *runtime.Error
		require.ErrorAs(t, err, &refused)
		require.NotContains(t, refused.Message, "a defect")
		s.HandleEvents(a.Token, []runtime.Emission{{Kind: checkpoint.EventCustom, Value: "2"}}, 0)
		completeTask(t, h, a, "1")
		require.EqualValues(t, "1", (<-r).Update)

		other := executeAsync(t.Context(), h, newTask("t2", &taskRun{}))
		completeTask(t, h, nextAssignment(t, s), "2")
		require.EqualValues(t, "2", (<-other).Update)
	})
}
