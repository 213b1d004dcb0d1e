package superstep

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// A superstep whose tasks are expressions has no effects: it may be computed while
// a change is put together, and computed again when the change meets a conflict or
// the server dies. So supersteps of that kind share the commit of what led to them.
// They are not visible before that, and no node with effects runs.

// Others wait for a change that is put together, and followers for what it will
// tell: after a while no other superstep is begun. One that is under way may
// take longer, or work that is nearly done would be thrown away just when the
// processor is busy.
const (
	inlineBudget = 2 * time.Millisecond
	inlineLimit  = 10 * inlineBudget
)

// usualInlineSteps is for how many supersteps event capacity is grown at once.
const usualInlineSteps = 16

// maxInlineBytes is how many bytes of new values one commit gathers at most.
const maxInlineBytes = 256 << 10

// nextLoop is the loop as it goes on from a state.
func (l *Loop) nextLoop(state *pregel.State, tasks []*pregel.Task) *Loop {
	return &Loop{
		env: l.env, thread: l.thread, run: l.run, state: state, tasks: tasks, level: l.level,
		maxStep: l.maxStep, breakBefore: l.breakBefore, breakAfter: l.breakAfter,
	}
}

// runInline runs supersteps without effects in the change that leads to them. It
// returns the end of the graph, or nil when the next superstep needs a commit of
// its own.
func (l *Loop) runInline(ctx context.Context, t *commit.Tx) *End {
	if l.run.Request.From != "" || (!l.level.keepsCheckpoints && l.level.maybeRerun) {
		return nil // a superstep may have been begun before
	}
	began, gathered := time.Now(), 0
	for n := 1; n < l.env.StepsPerCommit && gathered < maxInlineBytes && time.Since(began) < inlineBudget; n++ {
		w := &superstep{loop: l, toRun: l.tasks}
		if !w.runInlineStep(ctx, began) {
			return nil
		}
		if n == 1 {
			t.GrowEvents(commit.UsualEvents * min(len(l.Graph().Nodes), l.env.StepsPerCommit, usualInlineSteps))
		}
		grown, v := w.commitInlineStep(t)
		if v != nil || grown < 0 {
			return v
		}
		gathered += grown
	}
	return nil
}

// commitInlineStep puts what the tasks of a superstep returned into the change: how many bytes
// of values it wrote, and the verdict if the graph ends or pauses there. It is
// negative, and the change is as it was, when the superstep must be run by itself.
func (w *superstep) commitInlineStep(t *commit.Tx) (grown int, v *End) {
	l := w.loop
	before, ran := *t, l.tasks
	t.Now = l.env.Now()
	if waiting := w.openInterruptIDs(); len(waiting) > 0 {
		if err := w.putInterrupts(t); err != nil {
			*t = before
			return -1, nil
		}
		return 0, &End{State: checkpoint.RunInterrupted, openInterrupts: waiting}
	}
	state, tasks, err := w.applyContained(t)
	if err != nil {
		*t = before
		return -1, nil
	}
	grown = addedBytes(state.Checkpoint())
	if l.setHeldBytes(l.heldBytes + int64(grown)); grown >= largeWriteBytes && l.env.IsMemoryExceeded() {
		l.setHeldBytes(l.heldBytes - int64(grown)) // the loop finds out whether it may go on
		*t = before
		return -1, nil
	}
	l.state, l.tasks = state, tasks
	return grown, l.decideEnd(state, tasks, ran, &progress{})
}

// applyContained is apply where the superstep may as well be run by itself: a panic
// is an error, and comes up again there.
func (w *superstep) applyContained(t *commit.Tx) (state *pregel.State, tasks []*pregel.Task, err error) {
	if p := contain.Call(func() { state, tasks, err = w.applySuperstep(t) }); p != nil {
		return nil, nil, p
	}
	return state, tasks, err
}

// runInlineOnEntry does so in the change that enters a graph, unless the graph has
// breakpoints.
func (l *Loop) runInlineOnEntry(ctx context.Context, t *commit.Tx) {
	if l.hasBreakpoints() {
		return
	}
	next := l.nextLoop(l.state, l.tasks)
	l.inlineEnd = next.runInline(ctx, t)
	l.advanceTo(next)
}

// runInlineStep runs the tasks of a superstep one after the other. It returns false
// when they have effects, one failed, or time is up; the superstep is then run in
// the usual way.
func (w *superstep) runInlineStep(ctx context.Context, began time.Time) bool {
	l := w.loop
	if l.Graph().HasWorkerReducer() || l.Graph().Spec.StepTimeout > 0 || l.thread.Stop.IsStopping() {
		return false
	}
	for _, t := range w.toRun {
		if !l.isEffectless(t.Node) {
			return false
		}
	}
	w.unstored = make([]outcome, len(w.toRun))
	for i, t := range w.toRun {
		if ctx.Err() != nil || time.Since(began) > inlineLimit {
			return false
		}
		o := &w.unstored[i]
		o.task, o.attempt = t, 1
		started := l.env.Now()
		o.performContained(ctx, l, 1)
		w.countWrites(o)
		asks := len(o.openInterrupts) > 0 && l.level.isRoot && o.failure == nil && !o.isAborted
		if !asks && !o.isFinished() || o.result.ToParent {
			return false
		}
		o.observeAttempt(l, l.env.Now().Sub(started))
	}
	return true
}

// isEffectless reports whether a node does nothing but compute, and for no longer
// than expressions may. An interrupt of the root graph is part of the change too.
func (l *Loop) isEffectless(n *graph.Node) bool {
	kind := n.Kind == graph.KindExpr || n.Kind == graph.KindAsk && l.level.isRoot
	return kind && n.Timeout <= 0 && n.IdleTimeout <= 0 && len(pregel.CodeBranches(n)) == 0
}

// addedBytes is how many bytes of values a checkpoint adds to those before it.
func addedBytes(cp *checkpoint.Checkpoint) int {
	n := 0
	for i := range cp.Channels {
		ch := &cp.Channels[i]
		if ch.Stored != cp.Seq {
			continue
		}
		n += len(ch.Value)
		if ch.List != nil {
			for _, item := range ch.List.Items[len(ch.List.Items)-ch.List.Appended:] {
				n += len(item)
			}
		}
	}
	return n
}
