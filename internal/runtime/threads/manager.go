// Package threads makes, changes, copies, forks, prunes and deletes threads.
package threads

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// Options are the collaborators and limits of a Manager.
type Options struct {
	Store     *commit.StoreClient
	Reader    *query.Reader
	Committer *commit.Committer
	Versions  VersionChooser
	// Budget is the memory that calls hold of large states.
	Budget *runtime.ReadBudget
	Now    func() time.Time // the store's time
	Logger *zap.Logger

	MaxCopyBytes int // bytes of a thread that is copied
	// KeepCheckpoints is the number of checkpoints that a thread keeps at
	// rest, 0 = all.
	KeepCheckpoints uint64
	PruneDelay      time.Duration // time for which a thread rests before it is pruned

	// Change makes one change to a thread that may be driven here.
	Change func(ctx context.Context, thread string, b commit.Build) (checkpoint.Head, error)
	// Holdings keep tenants within their limits.
	Holdings Holdings
	// Remove deletes a thread that may be driven here, if it is at the revision of
	// head or any revision will do.
	Remove func(ctx context.Context, head checkpoint.Head, anyRevision bool) error
	// WakeScheduler makes the scheduler look for due threads.
	WakeScheduler func()
}

// VersionChooser chooses the version of a graph that a new thread gets where none is
// named. Errors: those of runtime.Graphs.
type VersionChooser interface {
	ChooseVersion(name string) (*graph.Graph, error)
}

// Holdings keep tenants within the limits of what they hold. The errors are *Error
// QUOTA_EXCEEDED, and those of the store.
type Holdings interface {
	CheckQuestions(ctx context.Context, thread string) error
	AddThread(ctx context.Context, thread string) (done func(isMade bool), err error)
}

// Manager makes, changes, copies, forks, prunes and deletes threads.
type Manager struct {
	opts     Options
	copySlot chan struct{} // holds a value while a thread is copied
}

// New makes a manager.
func New(opts Options) *Manager {
	return &Manager{opts: opts, copySlot: make(chan struct{}, 1)}
}
