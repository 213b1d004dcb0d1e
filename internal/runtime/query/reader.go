// Package query reads threads, for callers and for the parts that change threads: heads, runs,
// interrupts and states, large ones when there is memory for them.
package query

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Options are what a Reader uses.
type Options struct {
	Store  *commit.StoreClient
	Graphs runtime.Graphs
	Limits pregel.Limits
	// Budget is the memory that calls hold of large states.
	Budget *runtime.ReadBudget
	// SmallStateBytes is how large a state may be that is read without a reservation.
	SmallStateBytes int
	// Follow begins to read the events of a thread.
	Follow func(req runtime.FollowRequest) *feed.Follower
}

// Reader reads threads.
type Reader struct {
	opts  *Options
	store boundedStore
}

// boundedStore is a store, or a view of a thread, whose large checkpoints can be
// found out before they are read.
type boundedStore interface {
	checkpoint.Store
	ReadCheckpointWithin(ctx context.Context, thread, namespace, id string, most int) (*checkpoint.Checkpoint, error)
}

// New makes a reader.
func New(opts Options) *Reader { return &Reader{opts: &opts, store: opts.Store} }

// WithView is a reader that answers what it can from a view of a thread; without a
// view it is the same reader.
func (d *Reader) WithView(view *commit.ThreadView) *Reader {
	if view == nil {
		return d
	}
	return &Reader{opts: d.opts, store: view}
}
