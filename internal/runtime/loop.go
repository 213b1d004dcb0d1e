package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// loop drives one graph of a run, superstep by superstep: the root graph, or a
// subgraph inside one of its tasks.
type loop struct {
	session *session
	run     *checkpoint.Run
	state   *pregel.State
	tasks   []*pregel.Task
	level   level
	stop    int // the last superstep that may run
	pending progress
	// revisit says that this superstep may have been begun before, by an
	// earlier attempt or before a pause.
	revisit bool
	// inherited says that the server before may have handed out the tasks of this
	// superstep.
	inherited bool
	back      bool     // it goes on here after a pause, and has not said so
	copied    bool     // it begins with a copy of the checkpoint in state
	before    []string // breakpoints
	after     []string
	notes     notes // memos recorded in this superstep
	past      tidied
	holds     int64 // bytes that are counted of it
	// ended is how the run ends in the change that begins it or takes it up, nil
	// when it goes on.
	ended *verdict
}

// level is where a loop stands among the graphs of a run.
type level struct {
	root    bool
	stored  bool              // its checkpoints are kept
	task    string            // the parent's task, "" at the root
	top     string            // the task of the root that it is inside of, "" at the root
	parents map[string]string // ancestor namespace → checkpoint
	again   bool              // the parent's task may have been run before
	journey *journey          // nil = the run goes forward in time
	onWay   bool              // the journey leads through here, to a subgraph
	then    string            // the namespace in which the graph was then
	// together is what one server must have workers for, to go on with the graph:
	// the tasks that have called it and wait, and all of a graph that is not kept,
	// because it begins anew wherever it goes.
	together []checkpoint.Served
	alive    func() // puts off the idle timeout of the parent's task; nil at the root
	// stops says that the run may stop between two supersteps of this subgraph,
	// when it is cancelled or goes on elsewhere: the subgraph is kept, and so are
	// the graphs around it, up to the root. What code has called goes on until it
	// can answer the code.
	stops bool
	lone  bool // its task is the only one of the superstep, as those around it
	// attached says that something around it is lost when the run ends here before
	// a task has begun.
	attached bool
}

// verdict is why a loop has ended.
type verdict struct {
	state   checkpoint.RunState // running = another process shall go on
	failure *checkpoint.Failure
	waiting []string              // questions that are open
	command *pregel.Result        // for the enclosing graph
	err     error                 // the store failed or the lease is lost: nothing was decided
	settled bool                  // the end is durable already
	pause   *checkpoint.Interrupt // a breakpoint, to be stored with the end
}

func (l *loop) graph() *graph.Graph { return l.state.Graph() }

// drive runs the loop to its end.
func (l *loop) drive(ctx context.Context) verdict {
	if v := l.judge(l.state, l.tasks, nil, &l.pending); v != nil {
		return l.settle(*v)
	}
	for steps := 0; ; steps++ {
		if v := l.bidden(steps); v != nil {
			return l.settle(*v)
		}
		if v := l.superstep(ctx, steps); v != nil {
			return *v
		}
		l.tidy()
	}
}

// bidden says how the run ends when it was asked to stop between supersteps, or
// others need the room.
func (l *loop) bidden(steps int) *verdict {
	if !l.level.root && !l.level.stops {
		return nil
	}
	if l.session.stopping.Load() {
		return &verdict{state: checkpoint.RunCancelled, failure: cancelFailure("")}
	}
	if l.session.engine.isDraining() && (l.level.root || l.level.journey == nil) { // a journey does not outlive the server
		return &verdict{state: checkpoint.RunRunning}
	}
	if l.yields(steps) {
		return &verdict{state: checkpoint.RunRunning}
	}
	return nil
}

// judge says whether a graph in this state goes on: nil means that its tasks
// are to be run. ran lists the tasks of the superstep that led here, p what is
// known of the one ahead.
func (l *loop) judge(s *pregel.State, tasks, ran []*pregel.Task, p *progress) *verdict {
	if hit := s.Breaks(l.after, ran); len(hit) > 0 && !p.passed(s, "after") {
		return l.breakpoint(s, "after", hit)
	}
	if s.NextStep() > l.stop {
		return failed(&checkpoint.Failure{
			Reason:  FailedStepLimit,
			Message: fmt.Sprintf("the graph did not end within %d supersteps; raise step_limit or check its loops", l.limit()),
			Details: map[string]string{"limit": fmt.Sprint(l.limit())},
		})
	}
	if len(tasks) == 0 {
		return &verdict{state: checkpoint.RunSucceeded}
	}
	if hit := s.Breaks(l.before, tasks); len(hit) > 0 && len(p.tasks) == 0 && !p.passed(s, "before") {
		return l.breakpoint(s, "before", hit)
	}
	return nil
}

// passed reports whether somebody has let the run go on at a breakpoint.
func (p *progress) passed(s *pregel.State, when string) bool {
	id := pregel.BreakpointID(s.Checkpoint().ID, when)
	return slices.ContainsFunc(p.interrupts[""], func(q checkpoint.Interrupt) bool {
		return q.ID == id && q.State == checkpoint.InterruptConsumed
	})
}

func (l *loop) limit() int {
	if l.run.Request.StepLimit > 0 {
		return l.run.Request.StepLimit
	}
	if n := l.graph().Spec.StepLimit; n > 0 {
		return n
	}
	return l.session.engine.opts.StepLimit
}

func failed(f *checkpoint.Failure) *verdict {
	return &verdict{state: checkpoint.RunFailed, failure: f}
}

func broken(err error) *verdict { return &verdict{state: checkpoint.RunFailed, err: err} }

// superstep runs the tasks that are due and commits what they did. It returns
// nil when the graph goes on.
func (l *loop) superstep(ctx context.Context, steps int) *verdict {
	w := l.arrange()
	if len(w.run) > 0 {
		l.execute(ctx, w)
	}
	if w.err != nil {
		return broken(w.err)
	}
	if v := l.interrupted(ctx, w); v != nil {
		return v
	}
	if w.stoppedBelow() {
		v := verdict{state: checkpoint.RunRunning}
		if l.session.stopping.Load() {
			v = verdict{state: checkpoint.RunCancelled, failure: cancelFailure("")}
		}
		v = l.settleWith(w, v)
		return &v
	}
	if w.command != nil && !l.level.root {
		return &verdict{state: checkpoint.RunSucceeded, command: w.command}
	}
	if f := w.failure(); f != nil {
		l.foretell(ctx, w)
		v := l.settleWith(w, *failed(f))
		return &v
	}
	if len(w.allWaiting()) > 0 {
		return l.park(ctx, w)
	}
	if l.foregoes(w, steps) {
		v := l.settle(verdict{state: checkpoint.RunRunning})
		return &v
	}
	if v := l.combine(ctx, w); v != nil {
		return v
	}
	return l.advance(ctx, w)
}

// interrupted says how the loop ends when its work was stopped from outside.
func (l *loop) interrupted(ctx context.Context, w *work) *verdict {
	if ctx.Err() == nil {
		return nil
	}
	var v verdict
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errLeaseLost):
		return broken(errLeaseLost)
	case errors.Is(cause, errDrain), errors.Is(cause, errMove), errors.Is(cause, errUnserved):
		v = verdict{state: checkpoint.RunRunning}
	case errors.Is(cause, errTimedOut), errors.Is(cause, context.DeadlineExceeded):
		v = verdict{state: checkpoint.RunTimedOut, failure: &checkpoint.Failure{
			Reason: FailedRunTimeout, Message: "the run did not end within its timeout",
		}}
	default:
		v = verdict{state: checkpoint.RunCancelled, failure: cancelFailure("")}
	}
	v = l.settleWith(w, v)
	return &v
}

// advance ends the superstep: one commit with the next checkpoint, its events,
// the answers that were used, the supersteps without effects that follow, and
// the end of the run if this was it.
func (l *loop) advance(ctx context.Context, w *work) *verdict {
	var (
		next  *loop
		v     *verdict
		known progress
		bad   error
	)
	err := l.commit(func(t *tx) error {
		var (
			state *pregel.State
			tasks []*pregel.Task
			err   error
		)
		if state, tasks, bad = l.apply(t, w); bad != nil {
			return errNoChange
		}
		if known, err = l.recall(state); err != nil {
			return err
		}
		if next != nil { // an earlier attempt
			next.hold(0)
		}
		next = l.ahead(state, tasks)
		if v = l.judge(state, tasks, w.planned(), &known); v == nil {
			v = next.pass(ctx, t)
		}
		if !l.level.root {
			return nil
		}
		t.Head.Answered = 0 // all of them are used
		if v == nil {
			return nil
		}
		return l.end(t, next.state, v)
	})
	switch {
	case err != nil:
		return broken(err)
	case bad != nil:
		w.misfit(bad, updateFailure(bad))
		r := l.settleWith(w, *failed(w.unfit))
		return &r
	}
	l.succeed(next)
	l.inherited = l.inherited && !l.level.stored
	l.remember(known)
	l.forgetMemos()
	l.hold(l.weigh())
	if v != nil && !v.settled {
		s := l.settle(*v)
		return &s
	}
	return v
}

// apply puts the next checkpoint of the loop into a change.
func (l *loop) apply(t *tx, w *work) (*pregel.State, []*pregel.Task, error) {
	stamp := l.stamp(t, checkpoint.SourceLoop)
	done := w.merged
	if done == nil {
		done = w.done()
	}
	next, err := l.state.Apply(done, stamp)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := next.Plan()
	if err != nil {
		return nil, nil, err
	}
	l.report(t, w)
	w.consume(t)
	if l.revisit || w.recorded || l.notes.any() {
		l.usedUp(t, l.state.Checkpoint().ID)
	}
	l.put(t, next, tasks)
	return next, tasks, nil
}

// stamp numbers the next checkpoint of the loop.
func (l *loop) stamp(t *tx, source checkpoint.Source) pregel.Stamp {
	step := l.state.NextStep()
	stamp := pregel.Stamp{
		Time: t.now, Run: l.run.ID, Source: source, Step: step,
		Metadata: l.run.Metadata, Parents: l.level.parents,
	}
	if l.level.stored {
		stamp.ID, stamp.Seq = t.number()
	} else {
		stamp.ID, stamp.Seq = pregel.VirtualCheckpointID(l.level.task, step), uint64(step+3)
	}
	return stamp
}

// put adds a checkpoint, and the events that tell of it, to a change.
func (l *loop) put(t *tx, next *pregel.State, tasks []*pregel.Task) {
	if next.OutputChanged() {
		l.values(t, next, false)
	}
	l.keep(t, next, tasks)
}

// keep adds a checkpoint without telling of the state in it.
func (l *loop) keep(t *tx, next *pregel.State, tasks []*pregel.Task) {
	cp := next.Checkpoint()
	cp.Next = pregel.Next(tasks)
	stored := next.Stored()
	if l.level.stored {
		t.Checkpoints = append(t.Checkpoints, stored)
		if l.level.root {
			t.Head.Checkpoint, t.Head.Branched = cp.ID, false
		}
		t.emit(checkpoint.Event{
			Kind: checkpoint.EventCheckpoint, Namespace: cp.Namespace, Step: cp.Step,
			Checkpoint: cp.ID, Parent: cp.Parent, Source: cp.Source, Next: cp.Next,
		})
	}
	cp.Event, stored.Event = t.Head.LastEvent, t.Head.LastEvent
	if len(tasks) > usualEvents {
		t.expect(len(tasks))
	}
	for _, task := range tasks {
		if task.Node.Kind != graph.KindStart {
			l.scheduled(t, next, task)
		}
	}
}

// scheduled tells of a task that is due. What a Send gave it is in the log;
// what it sees of the state is read from the checkpoint, like values.
func (l *loop) scheduled(t *tx, next *pregel.State, task *pregel.Task) {
	e := l.taskEvent(task, checkpoint.PhaseScheduled, next.NextStep())
	e.Triggers = next.Triggers(task)
	if task.Push {
		e.Value = task.Input
		t.emitSecret(e, next.DurableInput(task.Input))
		return
	}
	if l.level.stored {
		e.Checkpoint = next.Checkpoint().ID
	}
	if l.session.topic.wantsInputs() {
		e.Value = next.View(task.Node).Object()
	}
	t.emitSecret(e, "")
}

// values tells of a state. Where a checkpoint holds it the log names that, and
// the text is made only for those who look on; a state that is ahead of its
// checkpoint, or has none, goes into the log itself.
func (l *loop) values(t *tx, s *pregel.State, ahead bool) {
	cp := s.Checkpoint()
	e := checkpoint.Event{Kind: checkpoint.EventValues, Namespace: cp.Namespace, Step: cp.Step}
	if !ahead && l.level.stored {
		e.Checkpoint = cp.ID
	}
	if e.Checkpoint == "" || l.session.topic.wantsValues() {
		e.Value = s.Values()
	}
	if e.Checkpoint == "" && l.graph().HasUntracked() {
		t.emitSecret(e, s.DurableValues())
		return
	}
	t.emit(e)
}

// commit makes one change of the loop. A subgraph without checkpoints commits
// its questions and events only.
func (l *loop) commit(b build) error {
	return l.session.commit(b)
}

// settle makes the end of the loop durable; only the root's end is one.
func (l *loop) settle(v verdict) verdict { return l.settleWith(&work{}, v) }

// settleWith does so together with what the tasks of the last superstep did.
func (l *loop) settleWith(w *work, v verdict) verdict {
	if v.err != nil || v.settled {
		return v
	}
	err := l.commit(func(t *tx) error {
		l.report(t, w)
		if err := l.record(t, w); err != nil {
			return err
		}
		l.keepReturned(t, w, v)
		l.keepPreview(t, w)
		l.giveUp(t, w, v)
		if l.level.root {
			return l.end(t, l.state, &v)
		}
		if v.pause != nil {
			t.pauseAt(v.pause, l.state.NextStep())
		}
		if len(t.live) == 0 && len(t.Tasks) == 0 && len(t.Interrupts) == 0 {
			return errNoChange
		}
		return nil
	})
	if err != nil {
		return verdict{state: v.state, err: err}
	}
	return v
}

// updateFailure says why the writes of a superstep could not be applied.
func updateFailure(err error) *checkpoint.Failure {
	f := &checkpoint.Failure{Reason: FailedInvalidUpdate, Message: err.Error()}
	var target *pregel.TargetError
	var update *pregel.UpdateError
	var limit *graph.LimitError
	switch {
	case errors.As(err, &limit):
		f.Reason, f.Details = FailedLimit, limit.Details()
	case errors.As(err, &target):
		f.Reason = FailedUnknownTarget
		f.Details = map[string]string{"target": target.Target}
	case errors.As(err, &update):
		f.Details = map[string]string{"channel": update.Channel}
	}
	return f
}
