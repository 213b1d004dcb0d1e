package superstep

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
)

// ResumeInline runs the superstep at which a run resumes, and those after it, in
// the change that resumes the run, if they have no effects. Otherwise the loop is
// unchanged and is driven in the usual way.
func (l *Loop) ResumeInline(ctx context.Context, t *commit.Tx) {
	if l.env.StepsPerCommit <= 1 || l.hasBreakpoints() || t.Head.Cancel != nil ||
		l.run.Request.From != "" || len(l.pending.commands) > 0 ||
		l.decideEnd(l.state, l.tasks, nil, &l.pending) != nil {
		return
	}
	began, w := time.Now(), inlineStep{l.planSuperstep()}
	if len(w.toRun) == 0 || len(w.openInterrupts) > 0 {
		return
	}
	span := l.traceStep(ctx)
	if !w.runTasks(within(ctx, span), began) || len(w.openInterruptIDs()) > 0 {
		return
	}
	before := *t
	state, tasks, err := w.applyContained(t)
	if err != nil {
		*t = before
		return
	}
	w.consumeInlineAnswers(t)
	next := l.nextFrame(state, tasks)
	v := l.decideEnd(state, tasks, w.plannedTasks(), &progress{})
	if span != nil {
		endStep(span, v)
	}
	if v == nil {
		v = next.runInline(ctx, t)
	}
	l.advanceTo(next)
	l.pending, l.maybeBegun, l.inlineEnd = progress{}, false, v
}

// consumeInlineAnswers marks the answers that a change brings and its own tasks have used.
func (is inlineStep) consumeInlineAnswers(t *commit.Tx) {
	for i := range t.Interrupts {
		q := &t.Interrupts[i]
		if q.State != checkpoint.InterruptAnswered {
			continue
		}
		for j := range is.unstored {
			if is.unstored[j].task.ID == q.Task {
				q.State, q.Accepted = checkpoint.InterruptConsumed, is.unstored[j].acceptedDifferences(q.ID)
				if q.Accepted != nil {
					t.EmitEvent(checkpoint.Event{Kind: checkpoint.EventResolved, Interrupts: []checkpoint.Interrupt{*q}})
				}
			}
		}
	}
}
