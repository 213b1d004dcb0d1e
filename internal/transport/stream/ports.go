package stream

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Engine has the methods of the runtime that streams call, without following.
type Engine interface {
	Runs
	Threads
	Interrupts
	Values
}

// Runs reads and stops runs.
type Runs interface {
	Run(ctx context.Context, memory *runtime.CallMemory, thread, run string) (checkpoint.Run, error)
	// OutputOfWaiting returns the output keys of the state of a run that waits.
	OutputOfWaiting(ctx context.Context, memory *runtime.CallMemory, run *checkpoint.Run) (payload.JSON, error)
	Cancel(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error)
}

// Interrupts reads the open interrupts of threads.
type Interrupts interface {
	// OpenInterrupts returns at most so many of them; whole says that they are all of those.
	OpenInterrupts(ctx context.Context, memory *runtime.CallMemory, thread string, most int) (open []checkpoint.Interrupt, whole bool, err error)
	OpenInterruptIDs(ctx context.Context, thread string, most int) ([]string, error)
}

// Threads reads threads and their states.
type Threads interface {
	Thread(ctx context.Context, thread string) (checkpoint.Head, error)
	State(ctx context.Context, req runtime.StateRequest) (runtime.Snapshot, error)
}

// Values reads the values that events of the log refer to.
type Values interface {
	// ValuesAt returns the output keys at a checkpoint.
	ValuesAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string) (payload.JSON, error)
	// InputAt returns the input of a node at a checkpoint.
	InputAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id, node string) (payload.JSON, error)
}

// Follower reads the events of one thread in order. One goroutine uses it.
type Follower interface {
	// CheckCursor returns an error if the log no longer has the event after which
	// the follower begins. It checks only a cursor with a mark.
	CheckCursor(ctx context.Context) error
	// Next waits for events and returns at least one. It returns ctx's error,
	// or its cause, when ctx ends.
	Next(ctx context.Context) ([]checkpoint.Event, error)
	// Rewind makes Next return events again that it returned last, those after a
	// durable event. Ephemeral events that are lost by then are left out.
	Rewind(after uint64, mark uint32)
	// RecentEphemeral returns the newest ephemeral events from before the follower came, in their
	// order, if FollowRequest asks for them. Each has the number of the durable event before it.
	RecentEphemeral() []checkpoint.Event
	Close()
}
