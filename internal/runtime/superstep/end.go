package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// End is how a loop has ended.
type End struct {
	State          checkpoint.RunState // running = another process shall go on
	Failure        *checkpoint.Failure
	openInterrupts []string              // interrupts that are open
	command        *pregel.Result        // for the enclosing graph
	Err            error                 // the store failed or the lease is lost: nothing was decided
	IsCommitted    bool                  // the end is durable already
	breakpoint     *checkpoint.Interrupt // a breakpoint, to be stored with the end
}

func failedEnd(f *checkpoint.Failure) *End {
	return &End{State: checkpoint.RunFailed, Failure: f}
}

func errorEnd(err error) *End { return &End{State: checkpoint.RunFailed, Err: err} }
