// Package query reads heads, runs, interrupts and states of threads, for callers and
// for the packages that change threads. It reads a large state when there is memory for
// it.
package query

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Options are the collaborators and limits of a Reader.
type Options struct {
	Store  *commit.StoreClient
	Graphs runtime.Graphs
	Limits pregel.Limits
	// Tenants have the limits of the states of each tenant; nil = none has one.
	Tenants runtime.TenantLimits
	// Budget is the memory that calls hold of large states.
	Budget *runtime.ReadBudget
	// SmallStateBytes is the size up to which a state is read without a reservation.
	SmallStateBytes int
	// Follow begins to read the events of a thread.
	Follow func(req runtime.FollowRequest) *feed.Follower
}

// Reader reads threads.
type Reader struct {
	opts  *Options
	store boundedStore
}

// boundedStore is a store, or a view of a thread, whose large checkpoints and large
// progress can be found out before they are read.
type boundedStore interface {
	checkpoint.Store
	ReadCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error)
	ReadPendingWithin(ctx context.Context, thread, id string, most int) (checkpoint.Pending, error)
}

// New makes a reader.
func New(opts Options) *Reader { return &Reader{opts: &opts, store: opts.Store} }

// WithView returns a reader that answers from a view of a thread where it can.
// Without a view it returns the same reader.
func (r *Reader) WithView(view *commit.ThreadView) *Reader {
	if view == nil {
		return r
	}
	return &Reader{opts: r.opts, store: view}
}
