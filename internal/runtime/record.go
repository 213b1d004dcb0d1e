package runtime

import (
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// consume marks the answers that the finished tasks have used.
func (w *work) consume(t *tx) {
	for _, list := range [][]outcome{w.stored, w.fresh} {
		for i := range list {
			w.consumeOf(t, &list[i])
		}
	}
}

func (w *work) consumeOf(t *tx, o *outcome) {
	if o.failure != nil || o.aborted {
		return
	}
	asked := w.loop.pending.interrupts[o.task.ID]
	for k := range asked {
		differs := o.acceptedFor(asked[k].ID)
		news := asked[k].State == checkpoint.InterruptAnswered || answered(&asked[k]) && differs != nil
		if !news || t.changed(asked[k].ID) {
			continue
		}
		used := asked[k]
		if used.State == checkpoint.InterruptAnswered {
			used.State = checkpoint.InterruptConsumed
		}
		if differs != nil {
			used.Accepted = differs
		}
		used.Updated = t.now
		t.Interrupts = append(t.Interrupts, used)
		if differs != nil {
			t.emit(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: []checkpoint.Interrupt{used}})
		}
	}
}

// changed reports whether the change touches a question already.
func (t *tx) changed(interrupt string) bool {
	return slices.ContainsFunc(t.Interrupts, func(i checkpoint.Interrupt) bool { return i.ID == interrupt })
}

// record puts what has ended, and is not stored yet, into a change, so that it
// need not be run again.
func (l *loop) record(t *tx, w *work) error {
	for i := range w.fresh {
		o := &w.fresh[i]
		if o.aborted {
			continue
		}
		if err := l.replaceOpen(t, o); err != nil {
			return err
		}
		o.supersede(t)
		w.consumeOf(t, o)
		l.ask(t, o)
		t.Tasks = append(t.Tasks, l.taskRecord(w, o))
	}
	for _, list := range [][]outcome{w.cached, w.stored} {
		for i := range list {
			if w.spoils(&list[i]) {
				t.Tasks = append(t.Tasks, l.taskRecord(w, &list[i]))
			}
		}
	}
	return nil
}

// keepReturned records what nodes have returned whose conditional edges are still
// to be decided, when the run is handed over: the next server decides them, and
// the nodes don't run again. A value that is not to be stored can't be kept so.
func (l *loop) keepReturned(t *tx, w *work, v verdict) {
	if v.state != checkpoint.RunRunning || l.graph().HasUntracked() {
		return
	}
	for _, o := range slices.Concat(w.stored, w.fresh) {
		if o.returned == nil || o.task.Node.Kind == graph.KindStart {
			continue
		}
		t.Tasks = append(t.Tasks, checkpoint.Task{
			ID: o.task.ID, Namespace: l.state.Namespace(), Checkpoint: l.state.Checkpoint().ID,
			Node: o.task.Node.Name, State: checkpoint.TaskReturned, Attempt: o.attempt,
			Update: o.returned.Update, Writes: o.returned.Writes, Goto: o.returned.Goto,
		})
	}
}

// returnedBefore is what a node has returned before the run was handed over. Only
// the first attempt may use it: a later one is made because that was no good.
func (l *loop) returnedBefore(t *pregel.Task, attempt int) (pregel.Result, bool) {
	record, ok := l.pending.tasks[t.ID]
	if !ok || record.State != checkpoint.TaskReturned || attempt > 1 {
		return pregel.Result{}, false
	}
	return pregel.Result{Update: record.Update, Writes: record.Writes, Goto: record.Goto}, true
}

// giveUp records why tasks were cut off when the superstep is over for now.
// They are run again when the thread goes on. No error handler takes over: the
// node itself has not failed.
func (l *loop) giveUp(t *tx, w *work, v verdict) {
	if v.state == checkpoint.RunRunning || v.failure == nil {
		return
	}
	why := &checkpoint.Failure{Reason: v.failure.Reason, Message: v.failure.Message}
	if v.state == checkpoint.RunFailed {
		why = &checkpoint.Failure{Reason: FailedSibling, Message: "cut off because another task of the superstep failed"}
	}
	for _, list := range [][]outcome{w.stored, w.fresh} {
		for i := range list {
			o := &list[i]
			if !o.aborted || o.stopped || o.task.Node.Kind == graph.KindStart {
				continue
			}
			t.Tasks = append(t.Tasks, checkpoint.Task{
				ID: o.task.ID, Namespace: l.state.Namespace(), Checkpoint: l.state.Checkpoint().ID,
				Node: o.task.Node.Name, Attempt: o.attempt, State: checkpoint.TaskFailed, Failure: why,
			})
			e := l.taskEvent(o.task, checkpoint.PhaseCancelled, l.state.NextStep())
			e.Attempt, e.Failure = o.attempt, why
			t.emit(e)
		}
	}
}

// misfit notes that the results of the superstep could not be put together.
func (w *work) misfit(err error, f *checkpoint.Failure) {
	w.unfit = f
	if update, ok := errors.AsType[*pregel.UpdateError](err); ok {
		w.channel = update.Channel
	}
	var nodes []string
	for _, o := range w.ended() {
		if w.spoils(&o) {
			nodes = append(nodes, o.task.Node.Name)
		}
	}
	slices.Sort(nodes)
	f.Node = strings.Join(slices.Compact(nodes), ", ")
}

// spoils reports whether a task has a part in that. Its result is worth
// nothing then: the task must run again, or the superstep could never end.
func (w *work) spoils(o *outcome) bool {
	return w.unfit != nil && o.finished() && (w.channel == "" || slices.ContainsFunc(o.writes,
		func(x checkpoint.Write) bool { return x.Channel == w.channel }))
}

func (l *loop) taskRecord(w *work, o *outcome) checkpoint.Task {
	r := checkpoint.Task{
		ID: o.task.ID, Namespace: l.state.Namespace(), Checkpoint: l.state.Checkpoint().ID,
		Node: o.task.Node.Name, Attempt: o.attempt,
	}
	r.Failure = l.pending.tasks[o.task.ID].Failure // of an earlier attempt
	switch {
	case w.spoils(o):
		unfit := *w.unfit
		unfit.Node = "" // of no node alone, so no error handler takes over
		r.State, r.Failure = checkpoint.TaskFailed, &unfit
	case o.failure != nil:
		r.State, r.Failure = checkpoint.TaskFailed, o.failure
	case len(o.waiting) > 0:
		r.State, r.Waiting = checkpoint.TaskWaiting, o.waiting
	default:
		r.State, r.Writes = checkpoint.TaskDone, l.state.Durable(o.writes)
	}
	return r
}

// ask adds the new questions of a task to a change.
func (l *loop) ask(t *tx, o *outcome) {
	asks := o.asking()
	if len(asks) == 0 {
		return
	}
	for i := range asks {
		asks[i].Created, asks[i].Updated = t.now, t.now
		t.due(asks[i].Expires)
	}
	t.Interrupts = append(t.Interrupts, asks...)
	t.Head.Open += len(asks)
	t.emit(checkpoint.Event{
		Kind: checkpoint.EventInterrupt, Namespace: l.state.Namespace(), Step: l.state.NextStep(),
		Node: o.task.Node.Name, Task: o.task.ID, Attempt: o.attempt,
		Checkpoint: l.state.Checkpoint().ID, Interrupts: asks,
	})
}
