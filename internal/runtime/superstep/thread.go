package superstep

import (
	"context"
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// Thread is the thread of a run as its loops see it: the facts that they may read, and a
// port for each service of its owner. All loops of the run share it.
type Thread struct {
	ID          string
	Log         *zap.Logger
	StoreCtx    context.Context          //nolint:containedctx // of store calls; it outlives cancelled work but not the lease
	WorkDone    <-chan struct{}          // closed when no result of a task is wanted any more
	Fence       uint64                   // of the lease
	Reservation *runtime.ReadReservation // memory for the state until the run is live
	Recovery    Recovery
	// HasReportedResults says that the log has the results of finished tasks already: the
	// run was running when it was taken up.
	HasReportedResults bool

	Committer Committer
	Followers Followers
	Stop      Stop
	RunEnd    RunEnd
	History   History
	Memory    Memory
	Tasks     TaskTracker
	Placement Placement
	Reasons   WaitReasons
}

// Committer makes changes under the lease.
type Committer interface {
	// BeginChange waits for the right to change the thread, and returns an empty change.
	// The error is ErrLeaseLost. Without an error the caller calls EndChange.
	BeginChange() (*commit.Tx, error)
	// ApplyChange makes the change. It is repeated until the store answers or the lease
	// is over; the error is ErrLeaseLost then. When another writer was faster it returns
	// an empty change from the newer head, to be built again.
	ApplyChange(t *commit.Tx) (again *commit.Tx, err error)
	EndChange() // gives the right to change the thread back
}

// Followers read the events of the thread.
type Followers interface {
	PublishEphemeral(e checkpoint.Event)
	WantsValues() bool
	WantsOutput() bool
	WantsInputs() bool
}

// Stop is how a run is stopped from outside, and given up from inside.
type Stop interface {
	IsStopping() bool // a cancel takes effect at the next superstep
	AbandonRun()      // the outcome of a change is not known
}

// RunEnd puts the end or the hand-over of a run into a change.
type RunEnd interface {
	// PutHandOver leaves a run that goes on to another server, or to a later time.
	PutHandOver(t *commit.Tx, run *checkpoint.Run)
	// PutCancelledEnd ends a run that is cancelled.
	PutCancelledEnd(t *commit.Tx, run checkpoint.Run, request checkpoint.Cancel) error
}

// History prunes the stored past of the thread.
type History interface {
	// PruneLive removes checkpoints and events that are too old. When it fails the run goes
	// on.
	PruneLive(run *checkpoint.Run)
}

// Memory counts the bytes that the loops of the run hold.
type Memory interface {
	AddBytes(delta int64)
	// RequestYield asks whether the run ends here between two supersteps: the live runs
	// hold too much, or its time share is over and others wait.
	RequestYield() bool
	// RequestDiscard asks whether the run ends here because there is no memory for the
	// writes of a superstep. isFirst says that the run was taken up for that superstep.
	RequestDiscard(isFirst bool) bool
}

// TaskTracker knows which tasks of the run are under way, and which of them wait for a
// worker.
type TaskTracker interface {
	// AddActive changes the number of active tasks by n.
	AddActive(n int)
	// TrackTask adds a task that needs a worker to the running tasks, until the caller
	// calls done. The caller sets stranded when no worker of this server takes the task,
	// and wait when the task waits for a certain worker.
	TrackTask(needs []checkpoint.Capability, mustStay bool) (stranded *atomic.Bool, wait *runtime.WorkerWait, done func())
}

// Placement decides on which server the run goes on.
type Placement interface {
	NotifyStranded() // a task can go on nowhere but at another server
	LeaveServer()    // this server stops
}

// WaitReasons are the reasons in the log of the thread for which its tasks wait for workers.
type WaitReasons interface {
	// CarryReason reports whether the log has this reason from an earlier turn of the
	// run, and takes it over into this turn.
	CarryReason(task, why string) bool
	// SetReason records that the log has this reason.
	SetReason(task, why string)
}

// commitChange makes one change of the thread. A subgraph without checkpoints commits
// its interrupts and events only.
func (th *Thread) commitChange(b commit.Build) error {
	c := th.Committer
	t, err := c.BeginChange()
	if err != nil {
		return err
	}
	defer c.EndChange()
	for t != nil {
		if err := b(t); errors.Is(err, commit.ErrNoChange) {
			return nil
		} else if err != nil {
			return err
		}
		if t, err = c.ApplyChange(t); err != nil {
			return err
		}
	}
	return nil
}
