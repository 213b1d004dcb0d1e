package runtime

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// progress is what is known of a superstep that was begun before.
type progress struct {
	tasks      map[string]checkpoint.Task
	commands   []checkpoint.Task // writes of calls, in the order in which they came
	preview    *checkpoint.Task  // what finished siblings come to, as workers have combined it
	memos      map[string][]checkpoint.Memo
	interrupts map[string][]checkpoint.Interrupt
}

func newProgress(p checkpoint.Pending) progress {
	out := progress{}
	if len(p.Tasks) > 0 {
		out.tasks = make(map[string]checkpoint.Task, len(p.Tasks))
	}
	for _, t := range p.Tasks {
		switch {
		case strings.HasPrefix(t.ID, commandPrefix):
			out.commands = append(out.commands, t)
		case t.ID == previewID:
			out.preview = &t
		default:
			out.tasks[t.ID] = t
		}
	}
	if len(p.Memos) > 0 {
		out.memos = make(map[string][]checkpoint.Memo)
	}
	for _, m := range p.Memos {
		out.memos[m.Task] = append(out.memos[m.Task], m)
	}
	if len(p.Interrupts) > 0 {
		out.interrupts = make(map[string][]checkpoint.Interrupt)
	}
	for _, i := range p.Interrupts {
		out.interrupts[i.Task] = append(out.interrupts[i.Task], i)
	}
	return out
}

// journal is what a task must see again.
func (p *progress) journal(task string) pregel.Journal {
	j := pregel.Journal{Memos: p.memos[task]}
	for _, i := range p.interrupts[task] {
		switch i.State {
		case checkpoint.InterruptAnswered, checkpoint.InterruptConsumed, checkpoint.InterruptExpired:
			j.Answers = append(j.Answers, pregel.Answer{
				Interrupt: i.ID, Scope: i.Scope, Key: i.Key, Index: i.Index, Value: i.Response,
				Dismissed: i.Dismissed, Reason: i.Note,
				Expired: i.State == checkpoint.InterruptExpired && i.Response == "",
			})
		default: // no answer came, or none will
		}
	}
	return j
}

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
	handled bool                   // its error handler takes over
	aborted bool                   // cut off; as if it had never begun
	cached  bool
	late    bool // ended after the others were cut off: told when the graph goes on
	attempt int
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
		if asked[k].State != checkpoint.InterruptAnswered || t.changed(asked[k].ID) {
			continue
		}
		used := asked[k]
		used.State, used.Updated = checkpoint.InterruptConsumed, t.now
		t.Interrupts = append(t.Interrupts, used)
	}
}

// changed reports whether the change touches a question already.
func (t *tx) changed(interrupt string) bool {
	return slices.ContainsFunc(t.Interrupts, func(i checkpoint.Interrupt) bool { return i.ID == interrupt })
}

// record puts what has ended, and is not stored yet, into a change, so that it
// need not be run again.
func (l *loop) record(t *tx, w *work) {
	for i := range w.fresh {
		o := &w.fresh[i]
		if o.aborted {
			continue
		}
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
			if !o.aborted || o.task.Node.Kind == graph.KindStart {
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
	if len(o.asks) == 0 {
		return
	}
	asks := slices.Clone(o.asks)
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

// report adds the events of the tasks that ended since the last commit.
func (l *loop) report(t *tx, w *work) {
	if w.back && len(w.run) > 0 && !w.told {
		l.values(t, l.state, false)
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
