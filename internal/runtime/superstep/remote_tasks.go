package superstep

import (
	"slices"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
)

// trackRemoteTask adds a task that needs a worker to the running tasks of the run, until
// the caller calls done.
func (fx *effects) trackRemoteTask(t *runtime.Task) (done func()) {
	fr := fx.frame
	if !fr.env.TracksTasks {
		return func() {}
	}
	need, _ := placement.CapabilityFor(t.Graph, t.Node)
	t.AlsoNeeds = fr.level.requiredCapabilities
	t.Stranded, t.WorkerWait, done = fr.thread.Tasks.TrackTask(append(slices.Clip(t.AlsoNeeds), need), fr.mustStay(t.Node))
	return done
}

// ReportUnassigned appends an event to the log of the thread: the task waits for a
// worker. It appends nothing when the log has the reason already.
func (fx *effects) ReportUnassigned(why string) {
	if fx.isOver.Load() {
		return
	}
	name := ""
	if fx.task.Node != nil {
		name = fx.task.Node.Name
	}
	fr := fx.frame
	if fr.thread.Reasons.CarryReason(fx.task.ID, why) {
		return
	}
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		t.EmitEvent(checkpoint.Event{
			Kind: checkpoint.EventTask, Namespace: fr.state.Namespace(), Step: fr.state.NextStep(),
			Node: name, Task: fx.task.ID, Attempt: fx.attempt,
			Phase: checkpoint.PhaseUnassigned, Failure: &checkpoint.Failure{
				Reason: runtime.ReasonNoWorkerAvailable, Message: why + "; the task waits", Node: name,
			},
		})
		return nil
	})
	if err != nil {
		fr.thread.Log.Warn("event not stored", zap.Error(err), runtime.CauseField(err))
		return
	}
	fr.thread.Reasons.SetReason(fx.task.ID, why)
}

// NotifyStranded moves the run when it can go on nowhere but at another server.
func (fx *effects) NotifyStranded() {
	if !fx.isOver.Load() {
		fx.frame.thread.Placement.NotifyStranded()
	}
}

// HandOff stops the run here, as soon as nothing else of it goes on; another
// server goes on with it.
func (fx *effects) HandOff() {
	if !fx.isOver.Load() {
		fx.frame.thread.Placement.LeaveServer()
	}
}
