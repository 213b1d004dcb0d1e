// Package admission decides about calls that start a run or answer interrupts: it
// refuses a call, stores it as a queued run or as answers, or begins a run at once.
package admission

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
)

// Viewer reads the head of a thread, with a view of its records where that costs no more.
type Viewer interface {
	ViewThread(ctx context.Context, thread, request string, head *checkpoint.Head) (*commit.ThreadView, error)
	WithSnapshot(snapshot *checkpoint.ThreadView) *commit.ThreadView
}

// RecentViews are views of threads as the changes of this server left them. They may be outdated.
type RecentViews interface {
	FindView(thread, request string) *checkpoint.ThreadView // nil = there is none
	DropView(thread string)
}

// Owner takes threads, and drives the runs that their first changes began.
type Owner interface {
	Take(ctx context.Context, head *checkpoint.Head, timeout time.Duration, p ownership.Prepare) (*checkpoint.Head, error)
}

// Changer changes threads that may be held here.
type Changer interface {
	ChangeFrom(ctx context.Context, head checkpoint.Head, b commit.Build) (checkpoint.Head, error)
	WaitUntilSettled(ctx context.Context, thread string) error
}

// Heads drafts the heads of new threads.
type Heads interface {
	NewHead(thread string) checkpoint.Head
}

// VersionChooser chooses the version of a graph on which a new thread runs that names
// none. Errors: those of runtime.Graphs.
type VersionChooser interface {
	ChooseVersion(name string) (*graph.Graph, error)
}

// Canceller asks live runs to stop.
type Canceller interface {
	PutRequest(ctx context.Context, t *commit.Tx, request checkpoint.Cancel) error
}

// Capacity refuses runs for which there is no capacity, or has their threads wait for it.
type Capacity interface {
	EnqueueThread(thread, run string, lack error)
	RefusalError(lack error) *runtime.Error
}

// Holdings keep tenants within the limits of what they hold. The errors are *Error
// QUOTA_EXCEEDED, and those of the store.
type Holdings interface {
	CheckQuestions(ctx context.Context, thread string) error
	AddThread(ctx context.Context, thread string) (done func(isMade bool), err error)
	AddQueuedRun(ctx context.Context, thread string) (done func(), err error)
}

// Commands stores the updates and gotos of answers, for the server that goes on with the
// run.
type Commands interface {
	PutCommand(ctx context.Context, reader *query.Reader, t *commit.Tx, update payload.JSON, to []checkpoint.Send) error
}

// Options are the collaborators and limits of an Admitter.
type Options struct {
	Reader    *query.Reader
	Committer *commit.Committer
	Env       *superstep.Env  // of the loops of the runs that begin
	Schemas   runtime.Schemas // nil = values are not checked
	// Conditions evaluates conditions of policies, nil = there are none.
	Conditions runtime.Conditions
	Observer   runtime.Observer

	Views     Viewer
	Recent    RecentViews
	Owner     Owner
	Changer   Changer
	Heads     Heads
	Versions  VersionChooser
	Canceller Canceller
	Capacity  Capacity
	Holdings  Holdings
	Commands  Commands

	QueueLimit    int              // runs that wait behind one another in a thread
	Now           func() time.Time // the store's time
	IsLive        func(thread string) bool
	WakeScheduler func()
}

// Admitter decides about calls that start or resume runs.
type Admitter struct {
	opts      Options
	predictor createPredictor
}

// New makes an admitter.
func New(opts Options) *Admitter { return &Admitter{opts: opts} }
