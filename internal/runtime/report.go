package runtime

import (
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// report adds the events of the tasks that ended since the last commit.
func (l *loop) report(t *tx, w *work) {
	if w.back && len(w.run) > 0 && !w.told {
		l.values(t, l.state, false)
	}
	if n := len(w.cached) + 2*len(w.fresh); n > usualEvents {
		t.expect(n + usualEvents)
	}
	for i := range w.cached {
		if o := &w.cached[i]; o.finished() && !w.told {
			l.update(t, o)
		}
	}
	for i := range w.fresh {
		o := &w.fresh[i]
		if o.aborted || o.late || o.task.Node.Kind == graph.KindStart {
			continue
		}
		e := l.taskEvent(o.task, o.phase(), l.state.NextStep())
		e.Attempt, e.Failure = o.attempt, o.failure
		if o.finished() {
			l.update(t, o)
		}
		t.emit(e)
	}
}

func (l *loop) update(t *tx, o *outcome) {
	if o.task.Node.Kind == graph.KindStart {
		return
	}
	e := checkpoint.Event{
		Kind: checkpoint.EventUpdate, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
		Node: o.task.Node.Name, Task: o.task.ID, Attempt: o.attempt,
		Value: l.state.UpdateOf(o.writes), Cached: o.cached || o.result.Cached,
	}
	if l.graph().HasUntracked() {
		t.emitSecret(e, l.state.UpdateOf(l.state.Durable(o.writes)))
		return
	}
	t.emit(e)
}

func (o *outcome) phase() checkpoint.Phase {
	switch {
	case o.failure != nil:
		return checkpoint.PhaseFailed
	case len(o.waiting) > 0:
		return checkpoint.PhaseInterrupted
	default:
		return checkpoint.PhaseSucceeded
	}
}

func (l *loop) taskEvent(task *pregel.Task, phase checkpoint.Phase, step int) checkpoint.Event {
	return checkpoint.Event{
		Kind: checkpoint.EventTask, Namespace: l.state.Namespace(), Step: step,
		Node: task.Node.Name, Task: task.ID, Phase: phase,
	}
}
