package runtime

import (
	"context"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Host is the engine's port for a task whose code is in another process.
type Host interface {
	// ResetIdleTimeout restarts the idle timeout of the attempt.
	ResetIdleTimeout()
	// ReportUnassigned reports to followers, once for each attempt, why no
	// worker can take the task now.
	ReportUnassigned(why string)
	// NotifyStranded reports that Task.Stranded was set, or that the workers of other
	// servers have changed since. The run may continue at such a server.
	NotifyStranded()
	// HandOff hands the run to another server, as a drain does, because this
	// server stops and no worker can take the task here any more.
	HandOff()
	// CallGraph runs a graph inside the task and returns when the graph has
	// stopped. A graph that stopped in an earlier attempt continues where it was.
	// A graph that has finished returns its output without running. CallGraph
	// ends with ctx. The error is an *Error when the call itself was wrong;
	// nothing was run.
	CallGraph(ctx context.Context, c GraphCall) (CallResult, error)
}

// GraphCall is the call of a graph inside a task.
type GraphCall struct {
	Index           int // number of graphs that the task has called before this graph
	Graph           string
	Version         string       // "" = the version of the calling graph's worker, or the newest
	Input           payload.JSON // "" = continue a persistent graph
	InterruptBefore []string     // breakpoints, in addition to the graph's own
	InterruptAfter  []string
	Persistence     string       // as in graph.SubgraphSpec
	Context         payload.JSON // "" = the run's
	StepLimit       int          // 0 = the graph's, or the engine's
}

// CallResult is the outcome of a called graph. Exactly one field is set.
type CallResult struct {
	Output  payload.JSON
	Waiting []string // open interrupts
	Failure *checkpoint.Failure
	Command *pregel.Result // for the calling task to return
}
