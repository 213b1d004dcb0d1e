package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// superstep is a superstep under way: the tasks that need not be run, those that
// run, and their outcomes.
type superstep struct {
	frame *frame
	outcomes

	toRun           []*pregel.Task      // to be executed
	openInterrupts  []string            // open interrupts
	hasRecords      bool                // task records exist for this superstep
	isReported      bool                // the cached results have been reported
	mustReportState bool                // the event of the state comes first: the graph goes on after a pause
	reduced         []pregel.TaskWrites // writes of the tasks, as workers have combined them; nil = not combined
	previewWrites   []checkpoint.Write  // writes of finished tasks to the channels that workers combine
	command         *pregel.Result      // for the enclosing graph
	mergeFailure    *checkpoint.Failure // why the results could not be put together
	mergeChannel    string              // where; "" = not known
	writtenBytes    int64               // writes of the tasks that ended now
	countedBytes    int64               // part of it that is counted as held
	isCutOff        bool                // a task has failed for good, or leaves the graph: the others are cut off
	storeErr        error               // the store failed
}

// planSuperstep sorts the tasks of the superstep into those to run and those that
// have come far enough already.
func (fr *frame) planSuperstep() *superstep {
	s := &superstep{frame: fr, toRun: fr.tasks, mustReportState: fr.mustReportState}
	fr.mustReportState = false
	if len(fr.pending.tasks) == 0 {
		return s
	}
	s.toRun = nil
	for _, t := range fr.tasks {
		s.planTask(t)
	}
	return s
}

func (s *superstep) planTask(t *pregel.Task) {
	fr := s.frame
	record, ok := fr.pending.tasks[t.ID]
	switch {
	case !ok:
		s.toRun = append(s.toRun, t)
	case record.State == checkpoint.TaskDone:
		s.cached = append(s.cached, outcome{task: t, writes: record.Writes, isCached: true})
	case handlerOf(t, record) != nil:
		s.cached = append(s.cached, outcome{task: t, failure: record.Failure, isHandled: true, isCached: true})
		s.planTask(handlerOf(t, record))
	case record.State == checkpoint.TaskWaiting && !s.isReady(t, record):
		s.openInterrupts = append(s.openInterrupts, record.Waiting...)
	default:
		s.toRun = append(s.toRun, t)
	}
}

// handlerOf returns the error handler that takes over for a failed task, nil for none. A
// node whose writes conflicted with those of others has not failed itself: it is run
// again.
func handlerOf(t *pregel.Task, record checkpoint.Task) *pregel.Task {
	if record.State != checkpoint.TaskFailed || record.Failure.Node == "" || isVersionRefusal(record.Failure.Reason) {
		return nil
	}
	return t.HandlerTask(record.Failure)
}

// isReady reports whether a task that asked may go on: all its interrupts have been
// answered, or, for a subgraph, any of them.
func (s *superstep) isReady(t *pregel.Task, record checkpoint.Task) bool {
	if t.Node.Kind == graph.KindGraph {
		return s.frame.maybeBegun
	}
	return s.hasNewAnswers(t, record)
}

func (s *superstep) plannedTasks() []*pregel.Task { return s.frame.tasks }

// hasNewAnswers reports whether an interrupt that a task waits for is answered: all of
// its own, or any of a graph that it called.
func (s *superstep) hasNewAnswers(t *pregel.Task, record checkpoint.Task) bool {
	fr := s.frame
	open, answered, foreign := false, false, false
	for _, id := range record.Waiting {
		switch fr.pending.interruptState(t.ID, id) {
		case checkpoint.InterruptOpen, checkpoint.InterruptRetractable:
			open = true
		case "":
			foreign = true
			if fr.thread == nil { // a preview: the task waits until it is run
				continue
			}
			q, err := fr.env.Store.Interrupt(fr.thread.StoreCtx, fr.thread.ID, id)
			if err != nil || !q.IsWaiting() {
				return true
			}
		default:
			answered = true
		}
	}
	return !open && (answered || !foreign)
}
