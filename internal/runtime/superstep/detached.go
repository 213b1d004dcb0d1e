package superstep

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// NewDetachedThread returns a thread that is edited and not driven: no lease is held, so
// the effects of code are not stored. RunEnd and History are nil, since no run begins or
// ends.
func NewDetachedThread(storeCtx context.Context, id string, log *zap.Logger, workDone <-chan struct{}, followers Followers) *Thread {
	d := detachedOwner{}
	return &Thread{
		ID: id, Log: log, StoreCtx: storeCtx, WorkDone: workDone,
		Committer: d, Followers: followers, Stop: d, Memory: d, Tasks: d, Placement: d, Reasons: d,
	}
}

// detachedOwner stands in for the owner of a thread that is edited.
type detachedOwner struct{}

// BeginChange refuses: nothing is stored.
func (detachedOwner) BeginChange() (*commit.Tx, error) { return nil, ErrLeaseLost }

// ApplyChange refuses as well.
func (detachedOwner) ApplyChange(*commit.Tx) (*commit.Tx, error) { return nil, ErrLeaseLost }

// EndChange has nothing to give back.
func (detachedOwner) EndChange() {}

// IsStopping returns false: only its caller cancels an edit.
func (detachedOwner) IsStopping() bool { return false }

// AbandonRun does nothing, since there is no run.
func (detachedOwner) AbandonRun() {}

// AddBytes counts nothing: the call that edits has reserved memory.
func (detachedOwner) AddBytes(int64) {}

// RequestYield returns false: nothing would go on with the edit.
func (detachedOwner) RequestYield() bool { return false }

// RequestDiscard returns false for the same reason.
func (detachedOwner) RequestDiscard(bool) bool { return false }

// AddActive counts nothing: an edit does not move to another server.
func (detachedOwner) AddActive(int) {}

// TrackTask tracks nothing for the same reason.
func (detachedOwner) TrackTask([]checkpoint.Capability, bool) (stranded *atomic.Bool, wait *runtime.WorkerWait, done func()) {
	return new(atomic.Bool), new(runtime.WorkerWait), func() {}
}

// NotifyStranded does nothing for the same reason.
func (detachedOwner) NotifyStranded() {}

// LeaveServer does nothing for the same reason.
func (detachedOwner) LeaveServer() {}

// CarryReason returns false, because an edit has no earlier turn.
func (detachedOwner) CarryReason(string, string) bool { return false }

// SetReason records nothing, because no later turn reads it.
func (detachedOwner) SetReason(string, string) {}
