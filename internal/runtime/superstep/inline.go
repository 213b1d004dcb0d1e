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

// A superstep whose tasks are expressions has no effects: it may be computed while a
// change is put together, and computed again when the change meets a conflict or the
// server dies. So supersteps of that kind share the commit of the change that leads to
// them. They are not visible before that, and no node with effects runs.

// Other changes wait for a change that is put together, and followers wait for its
// events. So after Env.CommitTime no other superstep is begun. A superstep under way may
// take longer, by overtimeFactor in all, or work that is nearly done would be thrown away
// just when the processor is busy.
const overtimeFactor = 10

// usualInlineSteps bounds for how many supersteps a change grows at once. A run that goes on
// is likely to reach its end: the change grows for as many supersteps as the graph has nodes.
const usualInlineSteps = 16

// maxInlineBytes is how many bytes of new values one commit gathers at most.
const maxInlineBytes = 256 << 10

// inlineStep is a superstep that is run inside a change.
type inlineStep struct{ *superstep }

// runInline runs supersteps without effects in the change that leads to them. It
// returns the end of the graph, or nil when the next superstep needs a commit of
// its own.
func (fr *frame) runInline(ctx context.Context, t *commit.Tx) *End {
	if fr.run.Request.From != "" || (!fr.level.keepsCheckpoints && fr.level.maybeRerun) {
		return nil // a superstep may have been begun before
	}
	began, gathered := time.Now(), 0
	for n := 1; n < fr.env.StepsPerCommit && gathered < maxInlineBytes && time.Since(began) < fr.env.CommitTime; n++ {
		w := inlineStep{&superstep{frame: fr, toRun: fr.tasks}}
		span := fr.traceStep(ctx)
		if !w.runTasks(within(ctx, span), began) {
			return nil
		}
		if t.EventRoom() < commit.UsualEvents {
			steps := min(len(fr.Graph().Nodes), fr.env.StepsPerCommit) - n
			t.GrowEvents(commit.UsualEvents * min(max(steps, 1), usualInlineSteps))
		}
		grown, v := w.commitStep(t)
		if span != nil && grown >= 0 {
			endStep(span, v)
		}
		if v != nil || grown < 0 {
			return v
		}
		gathered += grown
	}
	return nil
}

// commitStep puts the results of the tasks of a superstep into the change. It returns
// how many bytes of values the superstep wrote, and the verdict if the graph ends or
// pauses there. The number is negative, and the change is as it was, when the superstep
// must be run by itself.
func (is inlineStep) commitStep(t *commit.Tx) (grown int, v *End) {
	fr := is.frame
	before, ran := *t, fr.tasks
	t.Now = fr.env.Now()
	if waiting := is.openInterruptIDs(); len(waiting) > 0 {
		if err := is.putInterrupts(t); err != nil {
			*t = before
			return -1, nil
		}
		return 0, &End{State: checkpoint.RunInterrupted, openInterrupts: waiting}
	}
	state, tasks, err := is.applyContained(t)
	if err != nil {
		*t = before
		return -1, nil
	}
	grown = addedBytes(state.Checkpoint())
	if fr.setHeldBytes(fr.heldBytes + int64(grown)); grown >= largeWriteBytes && fr.env.IsMemoryExceeded() {
		fr.setHeldBytes(fr.heldBytes - int64(grown)) // the loop finds out whether it may go on
		*t = before
		return -1, nil
	}
	fr.state, fr.tasks = state, tasks
	return grown, fr.decideEnd(state, tasks, ran, &progress{})
}

// applyContained calls applySuperstep and returns a panic as an error. The superstep is
// then run by itself, and panics again there.
func (is inlineStep) applyContained(t *commit.Tx) (state *pregel.State, tasks []*pregel.Task, err error) {
	if p := contain.Call(func() { state, tasks, err = is.applySuperstep(t) }); p != nil {
		return nil, nil, p
	}
	return state, tasks, err
}

// runInlineOnEntry does so in the change that enters a graph, unless the graph has
// breakpoints. It returns the end of the graph, or nil.
func (l *graphLoop) runInlineOnEntry(ctx context.Context, t *commit.Tx) *End {
	if l.hasBreakpoints() {
		return nil
	}
	next := l.nextFrame(l.state, l.tasks)
	v := next.runInline(ctx, t)
	l.advanceTo(next)
	return v
}

// runTasks runs the tasks of a superstep one after the other. It returns false when they
// have effects, a task failed, or time is up. The superstep is then run in the usual
// way.
func (is inlineStep) runTasks(ctx context.Context, began time.Time) bool {
	fr := is.frame
	if fr.Graph().HasWorkerReducer() || fr.Graph().Spec.StepTimeout > 0 || fr.thread.Stop.IsStopping() {
		return false
	}
	for _, t := range is.toRun {
		if !is.isEffectless(t.Node) {
			return false
		}
	}
	is.unstored = make([]outcome, len(is.toRun))
	for i, t := range is.toRun {
		if ctx.Err() != nil || time.Since(began) > overtimeFactor*fr.env.CommitTime {
			return false
		}
		at := fr.newAttempt(t, 1)
		started := fr.env.Now()
		at.performContained(at.traceAttempt(ctx))
		o := &is.unstored[i]
		*o = at.outcome
		is.countWrites(o)
		asks := len(o.openInterrupts) > 0 && fr.level.isRoot && o.failure == nil && !o.isAborted
		if !asks && !o.isFinished() || o.result.ToParent {
			return false
		}
		at.observeAttempt(fr.env.Now().Sub(started))
		at.endTrace()
	}
	return true
}

// isEffectless reports whether a node does nothing but compute, and for no longer
// than expressions may. An interrupt of the root graph is part of the change too.
func (is inlineStep) isEffectless(n *graph.Node) bool {
	kind := n.Kind == graph.KindExpr || n.Kind == graph.KindAsk && is.frame.level.isRoot
	return kind && n.Timeout <= 0 && n.IdleTimeout <= 0 && len(pregel.CodeBranches(n)) == 0
}

// addedBytes returns how many bytes of values a checkpoint adds to those before it.
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
