package superstep

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// changeWriter puts what a loop does into a change.
type changeWriter struct {
	*commit.Tx

	loop *Loop
}

// writeTo returns a writer of the loop.
func (l *Loop) writeTo(t *commit.Tx) changeWriter { return changeWriter{Tx: t, loop: l} }

// emitTaskEvents adds the events of the tasks that ended since the last commit.
func (w *superstep) emitTaskEvents(t *commit.Tx) {
	l := w.loop
	if w.mustReportState && len(w.toRun) > 0 && !w.isReported {
		l.writeTo(t).emitValues(l.state, false)
	}
	if n := len(w.cached) + 2*len(w.unstored); n > commit.UsualEvents {
		t.GrowEvents(n + commit.UsualEvents)
	}
	for i := range w.cached {
		if o := &w.cached[i]; o.isFinished() && !w.isReported {
			l.writeTo(t).emitUpdate(o)
		}
	}
	for i := range w.unstored {
		o := &w.unstored[i]
		if o.isAborted || o.isLate || o.task.Node.Kind == graph.KindStart {
			continue
		}
		e := l.newTaskEvent(o.task, o.taskPhase(), l.state.NextStep())
		e.Attempt, e.Failure = o.attempt, o.failure
		if o.isFinished() {
			l.writeTo(t).emitUpdate(o)
		}
		t.EmitEvent(e)
	}
}

func (t changeWriter) emitUpdate(o *outcome) {
	l := t.loop
	if o.task.Node.Kind == graph.KindStart {
		return
	}
	e := checkpoint.Event{
		Kind: checkpoint.EventUpdate, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
		Node: o.task.Node.Name, Task: o.task.ID, Attempt: o.attempt,
		Value: l.state.UpdateOf(o.writes), Cached: o.isCached || o.result.Cached,
	}
	if l.Graph().HasUntracked() {
		t.EmitRedacted(e, l.state.UpdateOf(l.state.DurableWrites(o.writes)))
		return
	}
	t.EmitEvent(e)
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

func (l *Loop) newTaskEvent(task *pregel.Task, phase checkpoint.Phase, step int) checkpoint.Event {
	return checkpoint.Event{
		Kind: checkpoint.EventTask, Namespace: l.state.Namespace(), Step: step,
		Node: task.Node.Name, Task: task.ID, Phase: phase,
	}
}
