package stream

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// Engine is what streams ask of the runtime besides following.
type Engine interface {
	Runs
	Threads
	Values
}

// Runs reads and stops runs.
type Runs interface {
	Run(ctx context.Context, memory *runtime.CallMemory, thread, run string) (checkpoint.Run, error)
	OpenInterruptIDs(ctx context.Context, thread, run string, most int) ([]string, error)
	Cancel(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error)
}

// Threads reads threads and their states.
type Threads interface {
	Thread(ctx context.Context, thread string) (checkpoint.Head, error)
	State(ctx context.Context, req runtime.StateRequest) (runtime.Snapshot, error)
}

// Values reads what events of the log refer to.
type Values interface {
	// ValuesAt returns the output keys at a checkpoint.
	ValuesAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string) (payload.JSON, error)
	// InputAt returns what a node sees at a checkpoint.
	InputAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id, node string) (payload.JSON, error)
}

// Follower reads the events of one thread in order. One goroutine uses it.
type Follower interface {
	// CheckCursor reports whether the log still has the event that the follower
	// begins after, if its mark is known.
	CheckCursor(ctx context.Context) error
	// Next waits for events and returns at least one. It returns ctx's error,
	// or its cause, when ctx ends.
	Next(ctx context.Context) ([]checkpoint.Event, error)
	// Rewind gives back what Next returned last, as far as it comes after a
	// durable event; Next returns it again, except ephemeral events that are
	// lost by then.
	Rewind(after uint64, mark uint32)
	Close()
}
