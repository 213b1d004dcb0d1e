package message

import (
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Completion is how a task ended, in the words of its worker.
type Completion struct {
	Token          string
	Result         pregel.Result
	IsRefused      bool               // the worker does not have the node; Result says why
	Events         []runtime.Emission // the last events
	DroppedEvents  uint64
	EventsOnStream uint64 // sent on the stream
	WantsNext      bool   // the worker waits a moment for another task
	Bytes          int    // of all that
}

// Receipt is the answer to a completion.
type Receipt struct {
	IsDuplicate bool        // the lease had its result already
	Next        *Assignment // another task for the worker, nil = none
}
