// Package query reads threads, for callers and for the parts that change threads: heads, runs,
// interrupts and states, large ones when there is memory for them.
package query

import (
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
type Reader struct{ opts Options }

// New makes a reader.
func New(opts Options) *Reader { return &Reader{opts: opts} }
