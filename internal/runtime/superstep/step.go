package superstep

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// superstep is a superstep under way: the tasks that need not be run, those that
// run, and their outcomes.
type superstep struct {
	loop            *Loop
	toRun           []*pregel.Task      // to be executed
	cached          []outcome           // finished before; not run again
	openInterrupts  []string            // open interrupts
	unstored        []outcome           // ended now, not yet stored
	stored          []outcome           // ended now, already recorded
	hasRecords      bool                // task records exist for this superstep
	isReported      bool                // the cached results have been reported
	mustReportState bool                // the state has to be told first: the graph goes on after a pause
	reduced         []pregel.TaskWrites // what the tasks wrote, as workers have combined it; nil = as it is
	previewWrites   []checkpoint.Write  // what finished tasks come to for the channels that workers combine
	command         *pregel.Result      // for the enclosing graph
	mergeFailure    *checkpoint.Failure // why the results could not be put together
	mergeChannel    string              // where; "" = not known
	writtenBytes    int64               // what the tasks that ended now have written
	countedBytes    int64               // part of it that is counted as held
	isCutOff        bool                // a task has failed for good, or leaves the graph: the others are cut off
	storeErr        error               // the store failed
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
	isLate            bool // ended after the others were cut off: told when the graph goes on
	attempt           int
	// returned is what the node of an aborted task has returned: its conditional
	// edges were still to be decided.
	returned *pregel.Result
}

func (o *outcome) isFinished() bool {
	return o.failure == nil && len(o.openInterrupts) == 0 && !o.isAborted
}

// planSuperstep sorts the tasks of the superstep into those to run and those that
// have come far enough already.
func (l *Loop) planSuperstep() *superstep {
	w := &superstep{loop: l, toRun: l.tasks, mustReportState: l.mustReportState}
	l.mustReportState = false
	if len(l.pending.tasks) == 0 {
		return w
	}
	w.toRun = nil
	for _, t := range l.tasks {
		w.planTask(t)
	}
	return w
}

func (w *superstep) planTask(t *pregel.Task) {
	l := w.loop
	record, ok := l.pending.tasks[t.ID]
	switch {
	case !ok:
		w.toRun = append(w.toRun, t)
	case record.State == checkpoint.TaskDone:
		w.cached = append(w.cached, outcome{task: t, writes: record.Writes, isCached: true})
	case handlerOf(t, record) != nil:
		w.cached = append(w.cached, outcome{task: t, failure: record.Failure, isHandled: true, isCached: true})
		w.planTask(handlerOf(t, record))
	case record.State == checkpoint.TaskWaiting && !l.isReady(t, record):
		w.openInterrupts = append(w.openInterrupts, record.Waiting...)
	default:
		w.toRun = append(w.toRun, t)
	}
}

// handlerOf is the task that takes over for one that has failed, nil for none.
// A node whose writes did not fit those of others has not failed itself: it is
// run again.
func handlerOf(t *pregel.Task, record checkpoint.Task) *pregel.Task {
	if record.State != checkpoint.TaskFailed || record.Failure.Node == "" {
		return nil
	}
	return t.HandlerTask(record.Failure)
}

// isReady reports whether a task that asked may go on: all its interrupts have
// been answered, or, for a subgraph, one of them has.
func (l *Loop) isReady(t *pregel.Task, record checkpoint.Task) bool {
	if t.Node.Kind == graph.KindGraph {
		return l.maybeBegun
	}
	return l.hasNewAnswers(t, record)
}

func (w *superstep) plannedTasks() []*pregel.Task { return w.loop.tasks }

// endedOutcomes lists every task that has come to an end, in the order of the plan.
func (w *superstep) endedOutcomes() []outcome {
	if len(w.cached) == 0 && len(w.stored) == 0 {
		return w.unstored
	}
	return slices.Concat(w.cached, w.stored, w.unstored)
}

// finishedWrites lists the finished tasks with their writes.
func (w *superstep) finishedWrites() []pregel.TaskWrites {
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
func (w *superstep) hasStoppedSubgraph() bool {
	stopped := func(o outcome) bool { return o.isSubgraphStopped }
	return slices.ContainsFunc(w.unstored, stopped) || slices.ContainsFunc(w.stored, stopped)
}

// firstFailure is what makes the superstep fail: of several the first in the order
// of the plan.
func (w *superstep) firstFailure() *checkpoint.Failure {
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
