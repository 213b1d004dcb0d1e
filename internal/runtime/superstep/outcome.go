package superstep

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// outcomes are how the tasks of a superstep ended.
type outcomes struct {
	cached   []outcome // finished before; not run again
	stored   []outcome // ended now, already recorded
	unstored []outcome // ended now, not yet stored
}

// outcome is how one task ended.
type outcome struct {
	task           *pregel.Task
	result         pregel.Result
	writes         []checkpoint.Write
	failure        *checkpoint.Failure
	interrupts     []checkpoint.Interrupt // new interrupts
	openInterrupts []string               // interrupts that keep it from going on
	// superseded are interrupts that others are asked in place of, and accepted
	// the differences that the program has accepted.
	superseded        []checkpoint.Interrupt
	openReplacements  []openReplacement
	accepted          []acceptedDrift
	isHandled         bool // its error handler takes over
	isAborted         bool // cut off; as if it had never begun
	isSubgraphStopped bool // besides: its subgraph has stopped where it goes on
	isCached          bool
	isLate            bool // ended after the others were cut off: its events come when the graph goes on
	attempt           int
	// returned is the result of the node of an aborted task: its conditional edges were
	// still to be decided.
	returned *pregel.Result
}

func (o *outcome) isFinished() bool {
	return o.failure == nil && len(o.openInterrupts) == 0 && !o.isAborted
}

// endedOutcomes lists every task that has come to an end, in the order of the plan.
func (w *outcomes) endedOutcomes() []outcome {
	if len(w.cached) == 0 && len(w.stored) == 0 {
		return w.unstored
	}
	return slices.Concat(w.cached, w.stored, w.unstored)
}

// finishedWrites lists the finished tasks with their writes.
func (w *outcomes) finishedWrites() []pregel.TaskWrites {
	ended := w.endedOutcomes()
	done := make([]pregel.TaskWrites, 0, len(ended))
	for i := range ended {
		if ended[i].isFinished() || ended[i].isHandled {
			done = append(done, pregel.TaskWrites{Task: ended[i].task, Writes: ended[i].writes})
		}
	}
	return done
}

// hasStoppedSubgraph reports whether a subgraph has stopped between two of its
// supersteps, because the run is cancelled or goes on elsewhere.
func (w *outcomes) hasStoppedSubgraph() bool {
	stopped := func(o outcome) bool { return o.isSubgraphStopped }
	return slices.ContainsFunc(w.unstored, stopped) || slices.ContainsFunc(w.stored, stopped)
}

// firstFailure returns the failure that fails the superstep: of several the first in the
// order of the plan.
func (w *outcomes) firstFailure() *checkpoint.Failure {
	var first *outcome
	for _, list := range [][]outcome{w.stored, w.unstored} {
		for i := range list {
			o := &list[i]
			if o.failure == nil || o.isHandled || o.isAborted {
				continue
			}
			if first == nil || cmp.Compare(o.task.Node.Name, first.task.Node.Name) < 0 {
				first = o
			}
		}
	}
	if first == nil {
		return nil
	}
	return first.failure
}

func (o *outcome) setFailure(f *pregel.Failure) {
	stored := f.Failure
	stored.Node, stored.Attempt = o.task.Node.Name, o.attempt
	o.result.Failure, o.failure = f, &stored
	o.writes, o.openInterrupts, o.interrupts, o.superseded, o.openReplacements, o.accepted = nil, nil, nil, nil, nil, nil
}

func (o *outcome) taskPhase() checkpoint.Phase {
	switch {
	case o.failure != nil:
		return checkpoint.PhaseFailed
	case len(o.openInterrupts) > 0:
		return checkpoint.PhaseInterrupted
	default:
		return checkpoint.PhaseSucceeded
	}
}

// acceptedDrift is the set of parts of a question that differed when its answer was used.
type acceptedDrift struct {
	interrupt string
	differs   []string
}

// openReplacement is an open interrupt and the interrupt that replaces it, unless the
// open interrupt is answered first.
type openReplacement struct {
	current, replacement checkpoint.Interrupt
	isReplaced           bool
}
