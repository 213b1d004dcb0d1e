package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
)

// loop drives one graph of a run, superstep by superstep: the root graph, or a
// subgraph inside one of its tasks.
type loop struct {
	session *session
	run     *checkpoint.Run
	state   *pregel.State
	tasks   []*pregel.Task
	level   level
	maxStep int // the last superstep that may run
	pending progress
	// maybeBegun says that this superstep may have been begun before, by an
	// earlier attempt or before a pause.
	maybeBegun bool
	// maybeHandedOut says that the server before may have handed out the tasks of this
	// superstep.
	maybeHandedOut  bool
	mustReportState bool     // it goes on here after a pause, and has not said so
	beginsWithCopy  bool     // it begins with a copy of the checkpoint in state
	breakBefore     []string // breakpoints
	breakAfter      []string
	stepMemos       stepMemos // memos recorded in this superstep
	pruneMark       scheduler.PruneMark
	heldBytes       int64 // bytes that are counted of it
	// inlineEnd is how the run ends in the change that begins it or takes it up, nil
	// when it goes on.
	inlineEnd *loopEnd
}

// level is where a loop stands among the graphs of a run.
type level struct {
	isRoot           bool
	keepsCheckpoints bool              // its checkpoints are kept
	parentTask       string            // the parent's task, "" at the root
	rootTask         string            // the task of the root that it is inside of, "" at the root
	parents          map[string]string // ancestor namespace → checkpoint
	maybeRerun       bool              // the parent's task may have been run before
	replay           *replay           // nil = the run goes forward in time
	isOnReplayPath   bool              // the replay continues in a subgraph of this graph
	replayNamespace  string            // the namespace in which the graph was then
	// requiredCapabilities is what one server must have workers for, to
	// continue the graph:
	requiredCapabilities []checkpoint.Capability
	resetParentTimeout   func() // resets the idle timeout of the parent's task; nil at the root
	// isStoppable says that the run may stop between two supersteps of this subgraph,
	// when it is cancelled or goes on elsewhere: the subgraph is kept, and so are
	// the graphs around it, up to the root. What code has called goes on until it
	// can answer the code.
	isStoppable bool
	isOnlyTask  bool // its task is the only one of the superstep, as those around it
	// losesWorkOnStop says that something around it is lost when the run ends here before
	// a task has begun.
	losesWorkOnStop bool
}

// loopEnd is how a loop has ended.
type loopEnd struct {
	state          checkpoint.RunState // running = another process shall go on
	failure        *checkpoint.Failure
	openInterrupts []string              // interrupts that are open
	command        *pregel.Result        // for the enclosing graph
	err            error                 // the store failed or the lease is lost: nothing was decided
	isCommitted    bool                  // the end is durable already
	breakpoint     *checkpoint.Interrupt // a breakpoint, to be stored with the end
}

func (l *loop) graph() *graph.Graph { return l.state.Graph() }

// runSupersteps runs the loop to its end.
func (l *loop) runSupersteps(ctx context.Context) loopEnd {
	if v := l.decideEnd(l.state, l.tasks, nil, &l.pending); v != nil {
		return l.commitEnd(*v)
	}
	for steps := 0; ; steps++ {
		if v := l.requestedEnd(steps); v != nil {
			return l.commitEnd(*v)
		}
		if v := l.runSuperstep(ctx, steps); v != nil {
			return *v
		}
		l.pruneLive()
	}
}

// requestedEnd returns how the run ends when it must stop between supersteps:
// cancel, drain, or eviction.
func (l *loop) requestedEnd(steps int) *loopEnd {
	if !l.level.isRoot && !l.level.isStoppable {
		return nil
	}
	if l.session.isStopping.Load() {
		return &loopEnd{state: checkpoint.RunCancelled, failure: cancelFailure("")}
	}
	if l.session.engine.isDraining() && (l.level.isRoot || l.level.replay == nil) { // a replay does not outlive the server
		return &loopEnd{state: checkpoint.RunRunning}
	}
	if l.shouldYield(steps) {
		return &loopEnd{state: checkpoint.RunRunning}
	}
	return nil
}

// decideEnd returns how a graph in this state ends, nil = its tasks are to be run.
// ran lists the tasks of the last superstep, p is the progress of the next one.
func (l *loop) decideEnd(s *pregel.State, tasks, ran []*pregel.Task, p *progress) *loopEnd {
	if hit := s.HitBreakpoints(l.breakAfter, ran); len(hit) > 0 && !p.hasPassedBreakpoint(s, "after") {
		return l.breakpointEnd(s, "after", hit)
	}
	if s.NextStep() > l.maxStep {
		return failedEnd(&checkpoint.Failure{
			Reason:  runtime.FailedStepLimit,
			Message: fmt.Sprintf("the graph did not end within %d supersteps; raise step_limit or check its loops", l.stepLimit()),
			Details: map[string]string{"limit": fmt.Sprint(l.stepLimit())},
		})
	}
	if len(tasks) == 0 {
		return &loopEnd{state: checkpoint.RunSucceeded}
	}
	if hit := s.HitBreakpoints(l.breakBefore, tasks); len(hit) > 0 && len(p.tasks) == 0 && !p.hasPassedBreakpoint(s, "before") {
		return l.breakpointEnd(s, "before", hit)
	}
	return nil
}

// hasPassedBreakpoint reports whether the run was resumed at a breakpoint.
func (p *progress) hasPassedBreakpoint(s *pregel.State, when string) bool {
	id := pregel.BreakpointID(s.Checkpoint().ID, when)
	return slices.ContainsFunc(p.interrupts[""], func(q checkpoint.Interrupt) bool {
		return q.ID == id && q.State == checkpoint.InterruptConsumed
	})
}

func (l *loop) stepLimit() int {
	if l.run.Request.StepLimit > 0 {
		return l.run.Request.StepLimit
	}
	if n := l.graph().Spec.StepLimit; n > 0 {
		return n
	}
	return l.session.engine.opts.StepLimit
}

func failedEnd(f *checkpoint.Failure) *loopEnd {
	return &loopEnd{state: checkpoint.RunFailed, failure: f}
}

func errorEnd(err error) *loopEnd { return &loopEnd{state: checkpoint.RunFailed, err: err} }

// runSuperstep runs the tasks that are due and commits what they did. It returns
// nil when the graph goes on.
func (l *loop) runSuperstep(ctx context.Context, steps int) *loopEnd {
	w := l.planSuperstep()
	if len(w.toRun) > 0 {
		l.executeTasks(ctx, w)
	}
	if w.storeErr != nil {
		return errorEnd(w.storeErr)
	}
	if v := l.cutOffEnd(ctx, w); v != nil {
		return v
	}
	if w.hasStoppedSubgraph() {
		v := loopEnd{state: checkpoint.RunRunning}
		if l.session.isStopping.Load() {
			v = loopEnd{state: checkpoint.RunCancelled, failure: cancelFailure("")}
		}
		v = l.commitSuperstepEnd(w, v)
		return &v
	}
	if w.command != nil && !l.level.isRoot {
		return &loopEnd{state: checkpoint.RunSucceeded, command: w.command}
	}
	if f := w.firstFailure(); f != nil {
		l.reducePartial(ctx, w)
		v := l.commitSuperstepEnd(w, *failedEnd(f))
		return &v
	}
	if len(w.openInterruptIDs()) > 0 {
		return l.pauseForAnswers(ctx, w)
	}
	if l.shouldDiscard(w, steps) {
		v := l.commitEnd(loopEnd{state: checkpoint.RunRunning})
		return &v
	}
	if v := l.reduceResults(ctx, w); v != nil {
		return v
	}
	return l.commitSuperstep(ctx, w)
}

// cutOffEnd says how the loop ends when its work was stopped from outside.
func (l *loop) cutOffEnd(ctx context.Context, w *superstep) *loopEnd {
	if ctx.Err() == nil {
		return nil
	}
	var v loopEnd
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errLeaseLost):
		return errorEnd(errLeaseLost)
	case errors.Is(cause, errServerDrains), errors.Is(cause, errMovedToWorkers), errors.Is(cause, errUnserved):
		v = loopEnd{state: checkpoint.RunRunning}
	case errors.Is(cause, errRunTimedOut), errors.Is(cause, context.DeadlineExceeded):
		v = loopEnd{state: checkpoint.RunTimedOut, failure: &checkpoint.Failure{
			Reason: runtime.FailedRunTimeout, Message: "the run did not end within its timeout",
		}}
	default:
		v = loopEnd{state: checkpoint.RunCancelled, failure: cancelFailure("")}
	}
	v = l.commitSuperstepEnd(w, v)
	return &v
}

// commitSuperstep ends the superstep: one commit with the next checkpoint, its events,
// the answers that were used, the supersteps without effects that follow, and
// the end of the run if this was it.
func (l *loop) commitSuperstep(ctx context.Context, w *superstep) *loopEnd {
	var (
		next  *loop
		v     *loopEnd
		known progress
		bad   error
	)
	err := l.commitChange(func(t *commit.Tx) error {
		var (
			state *pregel.State
			tasks []*pregel.Task
			err   error
		)
		if state, tasks, bad = l.applySuperstep(t, w); bad != nil {
			return commit.ErrNoChange
		}
		if known, err = l.loadUnkeptProgress(state); err != nil {
			return err
		}
		if next != nil { // an earlier attempt
			next.setHeldBytes(0)
		}
		next = l.nextLoop(state, tasks)
		if v = l.decideEnd(state, tasks, w.plannedTasks(), &known); v == nil {
			v = next.runInline(ctx, t)
		}
		if !l.level.isRoot {
			return nil
		}
		t.Head.Answered = 0 // all of them are used
		if v == nil {
			return nil
		}
		return l.putRunEnd(t, next.state, v)
	})
	switch {
	case err != nil:
		return errorEnd(err)
	case bad != nil:
		w.setMergeFailure(bad, updateFailure(bad))
		r := l.commitSuperstepEnd(w, *failedEnd(w.mergeFailure))
		return &r
	}
	l.advanceTo(next)
	l.maybeHandedOut = l.maybeHandedOut && !l.level.keepsCheckpoints
	l.setProgress(known)
	l.clearMemos()
	l.setHeldBytes(l.measureBytes())
	if v != nil && !v.isCommitted {
		s := l.commitEnd(*v)
		return &s
	}
	return v
}

// applySuperstep puts the next checkpoint of the loop into a change.
func (l *loop) applySuperstep(t *commit.Tx, w *superstep) (*pregel.State, []*pregel.Task, error) {
	stamp := l.newCheckpointInfo(t, checkpoint.SourceLoop)
	done := w.reduced
	if done == nil {
		done = w.finishedWrites()
	}
	next, err := l.state.ApplyStep(done, stamp)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := next.PlanTasks()
	if err != nil {
		return nil, nil, err
	}
	l.emitTaskEvents(t, w)
	w.consumeAnswers(t)
	if l.maybeBegun || w.hasRecords || l.stepMemos.hasAdded() {
		l.clearSuperstep(t, l.state.Checkpoint().ID)
	}
	l.putStateAndCheckpoint(t, next, tasks)
	return next, tasks, nil
}

// newCheckpointInfo numbers the next checkpoint of the loop.
func (l *loop) newCheckpointInfo(t *commit.Tx, source checkpoint.Source) pregel.CheckpointInfo {
	step := l.state.NextStep()
	stamp := pregel.CheckpointInfo{
		Time: t.Now, Run: l.run.ID, Source: source, Step: step,
		Metadata: l.run.Metadata, Parents: l.level.parents,
	}
	if l.level.keepsCheckpoints {
		stamp.ID, stamp.Seq = t.NextCheckpointID()
	} else {
		stamp.ID, stamp.Seq = pregel.VirtualCheckpointID(l.level.parentTask, step), uint64(step+3)
	}
	return stamp
}

// putStateAndCheckpoint adds a checkpoint, and its events, to a change.
func (l *loop) putStateAndCheckpoint(t *commit.Tx, next *pregel.State, tasks []*pregel.Task) {
	if next.HasOutputChanged() {
		l.emitValues(t, next, false)
	}
	l.putCheckpoint(t, next, tasks)
}

// putCheckpoint adds a checkpoint without telling of the state in it.
func (l *loop) putCheckpoint(t *commit.Tx, next *pregel.State, tasks []*pregel.Task) {
	cp := next.Checkpoint()
	cp.Next = pregel.NextTasks(tasks)
	stored := next.StoredCheckpoint()
	if l.level.keepsCheckpoints {
		t.Checkpoints = append(t.Checkpoints, stored)
		if l.level.isRoot {
			t.Head.Checkpoint, t.Head.Branched = cp.ID, false
		}
		t.EmitEvent(checkpoint.Event{
			Kind: checkpoint.EventCheckpoint, Namespace: cp.Namespace, Step: cp.Step,
			Checkpoint: cp.ID, Parent: cp.Parent, Source: cp.Source, Next: cp.Next,
		})
	}
	cp.Event, stored.Event = t.Head.LastEvent, t.Head.LastEvent
	if len(tasks) > commit.UsualEvents {
		t.GrowEvents(len(tasks))
	}
	for _, task := range tasks {
		if task.Node.Kind != graph.KindStart {
			l.emitScheduled(t, next, task)
		}
	}
}

// emitScheduled emits the event of a due task. The input of a Send is in the log;
// what the task sees of the state is read from the checkpoint, like values.
func (l *loop) emitScheduled(t *commit.Tx, next *pregel.State, task *pregel.Task) {
	e := l.newTaskEvent(task, checkpoint.PhaseScheduled, next.NextStep())
	e.Triggers = next.Triggers(task)
	if task.IsPush {
		e.Value = task.Input
		t.EmitRedacted(e, next.DurableInput(task.Input))
		return
	}
	if l.level.keepsCheckpoints {
		e.Checkpoint = next.Checkpoint().ID
	}
	if l.session.topic.WantsInputs() {
		e.Value = next.NodeView(task.Node).Object()
	}
	t.EmitRedacted(e, "")
}

// emitValues emits the event of a state. If a checkpoint holds the state, the log
// names it and the text is made for current followers only; otherwise the log holds
// the state.
func (l *loop) emitValues(t *commit.Tx, s *pregel.State, ahead bool) {
	cp := s.Checkpoint()
	e := checkpoint.Event{Kind: checkpoint.EventValues, Namespace: cp.Namespace, Step: cp.Step}
	if !ahead && l.level.keepsCheckpoints {
		e.Checkpoint = cp.ID
	}
	if e.Checkpoint == "" || l.session.topic.WantsValues() {
		e.Value = s.Values()
	}
	if e.Checkpoint == "" && l.graph().HasUntracked() {
		t.EmitRedacted(e, s.DurableValues())
		return
	}
	t.EmitEvent(e)
}

// commitChange makes one change of the loop. A subgraph without checkpoints commits
// its interrupts and events only.
func (l *loop) commitChange(b commit.Build) error {
	return l.session.commitChange(b)
}

// commitEnd makes the end of the loop durable; only the root's end is one.
func (l *loop) commitEnd(v loopEnd) loopEnd { return l.commitSuperstepEnd(&superstep{}, v) }

// commitSuperstepEnd does so together with what the tasks of the last superstep did.
func (l *loop) commitSuperstepEnd(w *superstep, v loopEnd) loopEnd {
	if v.err != nil || v.isCommitted {
		return v
	}
	err := l.commitChange(func(t *commit.Tx) error {
		l.emitTaskEvents(t, w)
		if err := l.putTaskRecords(t, w); err != nil {
			return err
		}
		l.putReturned(t, w, v)
		l.putPreview(t, w)
		l.putCutOff(t, w, v)
		if l.level.isRoot {
			return l.putRunEnd(t, l.state, &v)
		}
		if v.breakpoint != nil {
			t.PutBreakpoint(v.breakpoint, l.state.NextStep())
		}
		if len(t.LiveEvents) == 0 && len(t.Tasks) == 0 && len(t.Interrupts) == 0 {
			return commit.ErrNoChange
		}
		return nil
	})
	if err != nil {
		return loopEnd{state: v.state, err: err}
	}
	return v
}

// updateFailure says why the writes of a superstep could not be applied.
func updateFailure(err error) *checkpoint.Failure {
	f := &checkpoint.Failure{Reason: runtime.FailedInvalidUpdate, Message: err.Error()}
	var target *pregel.TargetError
	var update *pregel.UpdateError
	var limit *graph.LimitError
	switch {
	case errors.As(err, &limit):
		f.Reason, f.Details = runtime.FailedLimit, limit.Details()
	case errors.As(err, &target):
		f.Reason = runtime.FailedUnknownTarget
		f.Details = map[string]string{"target": target.Target}
	case errors.As(err, &update):
		f.Details = map[string]string{"channel": update.Channel}
	}
	return f
}
