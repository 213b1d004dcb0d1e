package runtime

import (
	"cmp"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// work is a superstep under way: what need not be run, what is running, and
// what has come of it.
type work struct {
	loop     *loop
	run      []*pregel.Task      // to be executed
	cached   []outcome           // finished before; not run again
	waiting  []string            // open questions
	fresh    []outcome           // ended now, not yet stored
	stored   []outcome           // ended now, already recorded
	recorded bool                // task records exist for this superstep
	told     bool                // the cached results have been reported
	back     bool                // the state has to be told first: the graph goes on after a pause
	merged   []pregel.Done       // what the tasks wrote, as workers have combined it; nil = as it is
	preview  []checkpoint.Write  // what finished tasks come to for the channels that workers combine
	command  *pregel.Result      // for the enclosing graph
	unfit    *checkpoint.Failure // why the results could not be put together
	channel  string              // where; "" = not known
	bytes    int64               // what the tasks that ended now have written
	counted  int64               // part of it that is counted as held
	cut      bool                // a task has failed for good, or leaves the graph: the others are cut off
	err      error               // the store failed
}

// outcome is how one task ended.
type outcome struct {
	task    *pregel.Task
	result  pregel.Result
	writes  []checkpoint.Write
	failure *checkpoint.Failure
	asks    []checkpoint.Interrupt // new questions
	waiting []string               // questions that keep it from going on
	// superseded are questions that others are asked in place of, and accepted
	// the differences that the program has accepted.
	superseded []checkpoint.Interrupt
	restated   []restated
	accepted   []accepted
	handled    bool // its error handler takes over
	aborted    bool // cut off; as if it had never begun
	stopped    bool // besides: its subgraph has stopped where it goes on
	cached     bool
	late       bool // ended after the others were cut off: told when the graph goes on
	attempt    int
	// returned is what the node of an aborted task has returned: its conditional
	// edges were still to be decided.
	returned *pregel.Result
}

func (o *outcome) finished() bool {
	return o.failure == nil && len(o.waiting) == 0 && !o.aborted
}

// arrange sorts the tasks of the superstep into those to run and those that
// have come far enough already.
func (l *loop) arrange() *work {
	w := &work{loop: l, run: l.tasks, back: l.back}
	l.back = false
	if len(l.pending.tasks) == 0 {
		return w
	}
	w.run = nil
	for _, t := range l.tasks {
		l.place(w, t)
	}
	return w
}

func (l *loop) place(w *work, t *pregel.Task) {
	record, ok := l.pending.tasks[t.ID]
	switch {
	case !ok:
		w.run = append(w.run, t)
	case record.State == checkpoint.TaskDone:
		w.cached = append(w.cached, outcome{task: t, writes: record.Writes, cached: true})
	case handlerOf(t, record) != nil:
		w.cached = append(w.cached, outcome{task: t, failure: record.Failure, handled: true, cached: true})
		l.place(w, handlerOf(t, record))
	case record.State == checkpoint.TaskWaiting && !l.ready(t, record):
		w.waiting = append(w.waiting, record.Waiting...)
	default:
		w.run = append(w.run, t)
	}
}

// handlerOf is the task that takes over for one that has failed, nil for none.
// A node whose writes did not fit those of others has not failed itself: it is
// run again.
func handlerOf(t *pregel.Task, record checkpoint.Task) *pregel.Task {
	if record.State != checkpoint.TaskFailed || record.Failure.Node == "" {
		return nil
	}
	return t.Handler(record.Failure)
}

// ready reports whether a task that asked may go on: all its questions have
// been answered, or, for a subgraph, one of them has.
func (l *loop) ready(t *pregel.Task, record checkpoint.Task) bool {
	if t.Node.Kind == graph.KindGraph {
		return l.revisit
	}
	return l.progressed(t, record)
}

func (w *work) planned() []*pregel.Task { return w.loop.tasks }

// ended lists every task that has come to an end, in the order of the plan.
func (w *work) ended() []outcome {
	if len(w.cached) == 0 && len(w.stored) == 0 {
		return w.fresh
	}
	return slices.Concat(w.cached, w.stored, w.fresh)
}

// done lists the finished tasks with their writes.
func (w *work) done() []pregel.Done {
	ended := w.ended()
	done := make([]pregel.Done, 0, len(ended))
	for i := range ended {
		if ended[i].finished() || ended[i].handled {
			done = append(done, pregel.Done{Task: ended[i].task, Writes: ended[i].writes})
		}
	}
	return done
}

// stoppedBelow reports whether a subgraph has stopped between two of its
// supersteps, because the run is cancelled or goes on elsewhere.
func (w *work) stoppedBelow() bool {
	stopped := func(o outcome) bool { return o.stopped }
	return slices.ContainsFunc(w.fresh, stopped) || slices.ContainsFunc(w.stored, stopped)
}

// failure is what makes the superstep fail: of several the first in the order
// of the plan.
func (w *work) failure() *checkpoint.Failure {
	var first *outcome
	for _, list := range [][]outcome{w.stored, w.fresh} {
		for i := range list {
			o := &list[i]
			if o.failure == nil || o.handled || o.aborted {
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
