package superstep

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
)

// Loop drives one graph of a run, superstep by superstep: the root graph, or a
// subgraph inside one of its tasks.
type Loop struct {
	env     *Env
	thread  *Thread // nil = the loop is only looked at
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
	heldBytes       int64     // bytes that are counted of it
	// inlineEnd is how the run ends in the change that begins it or takes it up, nil
	// when it goes on.
	inlineEnd *End
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

// End is how a loop has ended.
type End struct {
	State          checkpoint.RunState // running = another process shall go on
	Failure        *checkpoint.Failure
	openInterrupts []string              // interrupts that are open
	command        *pregel.Result        // for the enclosing graph
	Err            error                 // the store failed or the lease is lost: nothing was decided
	IsCommitted    bool                  // the end is durable already
	breakpoint     *checkpoint.Interrupt // a breakpoint, to be stored with the end
}

// RunSupersteps runs the loop to its end.
func (l *Loop) RunSupersteps(ctx context.Context) End {
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
		if l.level.isRoot && l.run.Request.From == "" { // a run through the past is left alone
			l.thread.History.PruneLive(l.run)
		}
	}
}

// requestedEnd returns how the run ends when it must stop between supersteps:
// cancel, drain, or eviction.
func (l *Loop) requestedEnd(steps int) *End {
	if !l.level.isRoot && !l.level.isStoppable {
		return nil
	}
	if l.thread.Stop.IsStopping() {
		return &End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
	}
	if l.env.IsDraining() && (l.level.isRoot || l.level.replay == nil) { // a replay does not outlive the server
		return &End{State: checkpoint.RunRunning}
	}
	if l.shouldYield(steps) {
		return &End{State: checkpoint.RunRunning}
	}
	return nil
}

// decideEnd returns how a graph in this state ends, nil = its tasks are to be run.
// ran lists the tasks of the last superstep, p is the progress of the next one.
func (l *Loop) decideEnd(s *pregel.State, tasks, ran []*pregel.Task, p *progress) *End {
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
		return &End{State: checkpoint.RunSucceeded}
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

func (l *Loop) stepLimit() int {
	if l.run.Request.StepLimit > 0 {
		return l.run.Request.StepLimit
	}
	if n := l.Graph().Spec.StepLimit; n > 0 {
		return n
	}
	return l.env.StepLimit
}

func failedEnd(f *checkpoint.Failure) *End {
	return &End{State: checkpoint.RunFailed, Failure: f}
}

func errorEnd(err error) *End { return &End{State: checkpoint.RunFailed, Err: err} }

// runSuperstep runs the tasks that are due and commits what they did. It returns
// nil when the graph goes on.
func (l *Loop) runSuperstep(ctx context.Context, steps int) *End {
	w := l.planSuperstep()
	if len(w.toRun) > 0 {
		w.executeTasks(ctx)
	}
	if w.storeErr != nil {
		return errorEnd(w.storeErr)
	}
	if v := w.cutOffEnd(ctx); v != nil {
		return v
	}
	if w.hasStoppedSubgraph() {
		v := End{State: checkpoint.RunRunning}
		if l.thread.Stop.IsStopping() {
			v = End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
		}
		v = w.commitSuperstepEnd(v)
		return &v
	}
	if w.command != nil && !l.level.isRoot {
		return &End{State: checkpoint.RunSucceeded, command: w.command}
	}
	if f := w.firstFailure(); f != nil {
		w.reducePartial(ctx)
		v := w.commitSuperstepEnd(*failedEnd(f))
		return &v
	}
	if len(w.openInterruptIDs()) > 0 {
		return w.pauseForAnswers(ctx)
	}
	if w.shouldDiscard(steps) {
		v := l.commitEnd(End{State: checkpoint.RunRunning})
		return &v
	}
	if v := w.reduceResults(ctx); v != nil {
		return v
	}
	return w.commitSuperstep(ctx)
}

// cutOffEnd says how the loop ends when its work was stopped from outside.
func (w *superstep) cutOffEnd(ctx context.Context) *End {
	if ctx.Err() == nil {
		return nil
	}
	var v End
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrLeaseLost):
		return errorEnd(ErrLeaseLost)
	case errors.Is(cause, ErrServerDrains), errors.Is(cause, ErrMovedToWorkers), errors.Is(cause, ErrUnserved):
		v = End{State: checkpoint.RunRunning}
	case errors.Is(cause, ErrRunTimedOut), errors.Is(cause, context.DeadlineExceeded):
		v = End{State: checkpoint.RunTimedOut, Failure: &checkpoint.Failure{
			Reason: runtime.FailedRunTimeout, Message: "the run did not end within its timeout",
		}}
	default:
		v = End{State: checkpoint.RunCancelled, Failure: CancelFailure("")}
	}
	v = w.commitSuperstepEnd(v)
	return &v
}

// commitSuperstep ends the superstep: one commit with the next checkpoint, its events,
// the answers that were used, the supersteps without effects that follow, and
// the end of the run if this was it.
func (w *superstep) commitSuperstep(ctx context.Context) *End {
	l := w.loop
	var (
		next  *Loop
		v     *End
		known progress
		bad   error
	)
	err := l.commitChange(func(t *commit.Tx) error {
		var (
			state *pregel.State
			tasks []*pregel.Task
			err   error
		)
		if state, tasks, bad = w.applySuperstep(t); bad != nil {
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
		return l.writeTo(t).putRunEnd(next.state, v)
	})
	switch {
	case err != nil:
		return errorEnd(err)
	case bad != nil:
		w.setMergeFailure(bad, updateFailure(bad))
		r := w.commitSuperstepEnd(*failedEnd(w.mergeFailure))
		return &r
	}
	l.advanceTo(next)
	l.maybeHandedOut = l.maybeHandedOut && !l.level.keepsCheckpoints
	l.setProgress(known)
	l.clearMemos()
	l.setHeldBytes(l.measureBytes())
	if v != nil && !v.IsCommitted {
		s := l.commitEnd(*v)
		return &s
	}
	return v
}

// applySuperstep puts the next checkpoint of the loop into a change.
func (w *superstep) applySuperstep(t *commit.Tx) (*pregel.State, []*pregel.Task, error) {
	l := w.loop
	stamp := l.writeTo(t).newCheckpointInfo(checkpoint.SourceLoop)
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
	w.emitTaskEvents(t)
	w.consumeAnswers(t)
	if l.maybeBegun || w.hasRecords || l.stepMemos.hasAdded() {
		l.writeTo(t).clearSuperstep(l.state.Checkpoint().ID)
	}
	l.writeTo(t).putStateAndCheckpoint(next, tasks)
	return next, tasks, nil
}

// newCheckpointInfo numbers the next checkpoint of the loop.
func (t changeWriter) newCheckpointInfo(source checkpoint.Source) pregel.CheckpointInfo {
	l := t.loop
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
func (t changeWriter) putStateAndCheckpoint(next *pregel.State, tasks []*pregel.Task) {
	if next.HasOutputChanged() {
		t.emitValues(next, false)
	}
	t.putCheckpoint(next, tasks)
}

// putCheckpoint adds a checkpoint without telling of the state in it.
func (t changeWriter) putCheckpoint(next *pregel.State, tasks []*pregel.Task) {
	l := t.loop
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
			t.emitScheduled(next, task)
		}
	}
}

// emitScheduled emits the event of a due task. The input of a Send is in the log;
// what the task sees of the state is read from the checkpoint, like values.
func (t changeWriter) emitScheduled(next *pregel.State, task *pregel.Task) {
	l := t.loop
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
	if l.thread.Followers.WantsInputs() {
		e.Value = next.NodeView(task.Node).Object()
	}
	t.EmitRedacted(e, "")
}

// emitValues emits the event of a state. If a checkpoint holds the state, the log
// names it and the text is made for current followers only; otherwise the log holds
// the state.
func (t changeWriter) emitValues(s *pregel.State, ahead bool) {
	l := t.loop
	cp := s.Checkpoint()
	e := checkpoint.Event{Kind: checkpoint.EventValues, Namespace: cp.Namespace, Step: cp.Step}
	if !ahead && l.level.keepsCheckpoints {
		e.Checkpoint = cp.ID
	}
	if e.Checkpoint == "" || l.thread.Followers.WantsValues() {
		e.Value = s.Values()
	}
	if e.Checkpoint == "" && l.Graph().HasUntracked() {
		t.EmitRedacted(e, s.DurableValues())
		return
	}
	t.EmitEvent(e)
}

// commitChange makes one change of the loop. A subgraph without checkpoints commits
// its interrupts and events only.
func (l *Loop) commitChange(b commit.Build) error {
	c := l.thread.Committer
	t, err := c.BeginChange()
	if err != nil {
		return err
	}
	defer c.EndChange()
	for t != nil {
		if err := b(t); errors.Is(err, commit.ErrNoChange) {
			return nil
		} else if err != nil {
			return err
		}
		if t, err = c.ApplyChange(t); err != nil {
			return err
		}
	}
	return nil
}

// commitEnd makes the end of the loop durable; only the root's end is one.
func (l *Loop) commitEnd(v End) End { return (&superstep{loop: l}).commitSuperstepEnd(v) }

// commitSuperstepEnd does so together with what the tasks of the last superstep did.
func (w *superstep) commitSuperstepEnd(v End) End {
	l := w.loop
	if v.Err != nil || v.IsCommitted {
		return v
	}
	err := l.commitChange(func(t *commit.Tx) error {
		w.emitTaskEvents(t)
		if err := w.putTaskRecords(t); err != nil {
			return err
		}
		w.putReturned(t, v)
		w.putPreview(t)
		w.putCutOff(t, v)
		if l.level.isRoot {
			return l.writeTo(t).putRunEnd(l.state, &v)
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
		return End{State: v.State, Err: err}
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

// CancelFailure is the failure of a cancelled run.
func CancelFailure(reason string) *checkpoint.Failure {
	f := &checkpoint.Failure{Reason: runtime.FailedCancelledByClient, Message: "the run was cancelled"}
	if reason != "" {
		f.Message += ": " + reason
	}
	return f
}

// InternalFailure is the failure of a run, or of a task, on whose behalf the engine panicked.
func InternalFailure() *checkpoint.Failure {
	return &checkpoint.Failure{Reason: runtime.ReasonInternal, Message: "the engine failed; the operator's log says why"}
}
