package superstep

import (
	"slices"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// noteHolder notes, for the next server, whether a worker may still have the task at the
// end of the attempt.
func (fx *effects) noteHolder() {
	r, top := &fx.frame.thread.Recovery, fx.frame.level.rootTask
	if fx.isUnresolved.Load() {
		r.noteUnresolved(top)
		return
	}
	r.noteResolved(fx.task.ID)
	if fx.isStillRemote.Load() {
		r.addLeft(fx.task.ID, top)
	}
}

// recoveredAt returns when the run was taken up, if a task of the loop's superstep may
// have been handed out before; else zero.
func (fr *frame) recoveredAt(task string) time.Time {
	r := &fr.thread.Recovery
	switch {
	case !fr.maybeHandedOut:
		return time.Time{}
	case !fr.level.isRoot: // with the task that runs the graph, those of the graph are lent
		return r.takenUpAt
	case slices.Contains(r.remoteTasks, checkpoint.AnyTask), slices.Contains(r.remoteTasks, task):
		return r.takenUpAt
	}
	return time.Time{}
}

// isRecoveredInside reports whether tasks of a graph that a task of the loop's
// superstep runs, or calls, may have been handed out before.
func (fr *frame) isRecoveredInside(task string) bool {
	return !fr.recoveredAt(task).IsZero() ||
		fr.maybeHandedOut && slices.Contains(fr.thread.Recovery.remoteTasks, task+checkpoint.Inside)
}

// listUnfinished lists the tasks of the superstep that was taken up here and that are
// still to be run, none when the loop has come further.
func (fr *frame) listUnfinished() []*pregel.Task {
	if !fr.maybeHandedOut {
		return nil
	}
	s := &superstep{frame: fr}
	for _, t := range fr.tasks {
		s.planTask(t)
	}
	return s.toRun
}
