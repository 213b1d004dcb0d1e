package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// emitTaskEvents adds the events of the tasks that ended since the last commit.
func (s *superstep) emitTaskEvents(t *commit.Tx) {
	fr := s.frame
	if s.mustReportState && (len(s.toRun) > 0 || len(fr.tasks) == 0) && !s.isReported {
		fr.writeTo(t).emitValues(fr.state, false)
		if !fr.thread.HasReportedResults { // the run is not just taken up by another server
			fr.writeTo(t).emitSuperstep(fr.state, fr.tasks, false, true)
		}
	}
	if n := len(s.cached) + 2*len(s.unstored); n > commit.UsualEvents {
		t.GrowEvents(n + commit.UsualEvents)
	}
	for i := range s.cached {
		if o := &s.cached[i]; o.isFinished() && !s.isReported {
			fr.writeTo(t).emitUpdate(o)
		}
	}
	for i := range s.unstored {
		o := &s.unstored[i]
		if o.isAborted || o.isLate || o.task.Node.Kind == graph.KindStart {
			continue
		}
		e := fr.newTaskEvent(o.task, o.taskPhase(), fr.state.NextStep())
		e.Attempt, e.Failure = o.attempt, o.failure
		if o.isFinished() {
			fr.writeTo(t).emitUpdate(o)
		}
		t.EmitEvent(e)
	}
}

func (cw changeWriter) emitUpdate(o *outcome) {
	fr := cw.frame
	if o.task.Node.Kind == graph.KindStart {
		return
	}
	e := checkpoint.Event{
		Kind: checkpoint.EventUpdate, Namespace: fr.state.Namespace(), Step: fr.state.NextStep(),
		Node: o.task.Node.Name, Task: o.task.ID, Attempt: o.attempt,
		Value: fr.state.UpdateOf(o.writes), Cached: o.isCached || o.result.Cached,
	}
	if fr.Graph().HasUntracked() {
		cw.EmitRedacted(e, fr.state.UpdateOf(fr.state.DurableWrites(o.writes)))
		return
	}
	cw.EmitEvent(e)
}

func (fr *frame) newTaskEvent(task *pregel.Task, phase checkpoint.Phase, step int) checkpoint.Event {
	return checkpoint.Event{
		Kind: checkpoint.EventTask, Namespace: fr.state.Namespace(), Step: step,
		Node: task.Node.Name, Task: task.ID, Phase: phase,
	}
}
