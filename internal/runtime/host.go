package runtime

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Host is what the engine does for a task whose code is in another process.
type Host interface {
	// ResetIdleTimeout puts the idle timeout of the attempt off.
	ResetIdleTimeout()
	// ReportUnassigned tells followers that no worker can take the task now,
	// and why. It is told once per attempt.
	ReportUnassigned(why string)
	// NotifyStranded says that Task.Stranded has been set, or that the workers of other
	// servers have changed since: the run may go on there.
	NotifyStranded()
	// HandOff gives the run to another server, as a drain does, because this
	// one leaves and no worker can take the task here any more.
	HandOff()
	// CallGraph runs a graph inside the task and returns when it has stopped. One
	// that stopped in an earlier attempt goes on where it was, or returns its
	// output without running. It ends with ctx. The error is an *Error: the
	// call itself was wrong, and nothing was run.
	CallGraph(ctx context.Context, c GraphCall) (CallResult, error)
}

// GraphCall asks to run a graph inside a task.
type GraphCall struct {
	Index           int // how many graphs the task has called before this one
	Graph           string
	Version         string       // "" = the version of the calling graph's worker, or the newest
	Input           payload.JSON // "" = go on with what a persistent graph has left to do
	InterruptBefore []string     // breakpoints, besides the graph's own
	InterruptAfter  []string
	Persistence     string       // as in graph.SubgraphSpec
	Context         payload.JSON // "" = the run's
	StepLimit       int          // 0 = the graph's, or the engine's
}

// CallResult is how a called graph stopped; exactly one field is set.
type CallResult struct {
	Output  payload.JSON
	Waiting []string // open interrupts
	Failure *checkpoint.Failure
	Command *pregel.Result // for the calling task to return
}
