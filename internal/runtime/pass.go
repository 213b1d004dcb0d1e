package runtime

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// A superstep whose tasks are expressions has no effects: it may be computed
// while a change is put together, and computed again when the change meets a
// conflict or the server dies. So supersteps of that kind share the commit of
// what led to them. Nobody hears of them before that, and no node with effects
// runs.

// Others wait for a change that is put together, and followers for what it will
// tell: after a while no other superstep is begun. One that is under way may
// take longer, or work that is nearly done would be thrown away just when the
// processor is busy.
const (
	briefly = 2 * time.Millisecond
	overdue = 10 * briefly
)

// usualChain is for how many supersteps room is made at once.
const usualChain = 16

// plenty is how many bytes of new values one commit gathers at most.
const plenty = 256 << 10

// ahead is the loop as it goes on from a state.
func (l *loop) ahead(state *pregel.State, tasks []*pregel.Task) *loop {
	return &loop{
		session: l.session, run: l.run, state: state, tasks: tasks, level: l.level,
		stop: l.stop, before: l.before, after: l.after,
	}
}

// pass runs supersteps without effects in the change that leads to them, until
// the graph ends or pauses, as the verdict says, or a superstep must be run by
// itself: then the verdict is nil.
func (l *loop) pass(ctx context.Context, t *tx) *verdict {
	e := l.session.engine
	if l.run.Request.From != "" || (!l.level.stored && l.level.again) {
		return nil // a superstep may have been begun before
	}
	began, gathered := time.Now(), 0
	for n := 1; n < e.opts.Together && gathered < plenty && time.Since(began) < briefly; n++ {
		w := &work{loop: l, run: l.tasks}
		if !l.passing(ctx, w, began) {
			return nil
		}
		if n == 1 {
			t.expect(usualEvents * min(len(l.graph().Nodes), e.opts.Together, usualChain))
		}
		before, ran := *t, l.tasks
		t.now = e.now()
		if waiting := w.allWaiting(); len(waiting) > 0 {
			if err := l.pauseFor(t, w); err != nil {
				*t = before
				return nil
			}
			return &verdict{state: checkpoint.RunInterrupted, waiting: waiting}
		}
		state, tasks, err := l.applyQuietly(t, w)
		if err != nil {
			*t = before
			return nil
		}
		grown := weight(state.Checkpoint())
		if l.hold(l.holds + int64(grown)); grown >= muchWritten && e.bytes.exceeded() {
			l.hold(l.holds - int64(grown)) // the loop finds out whether it may go on
			*t = before
			return nil
		}
		gathered += grown
		l.state, l.tasks = state, tasks
		if v := l.judge(state, tasks, ran, &progress{}); v != nil {
			return v
		}
	}
	return nil
}

// applyQuietly is apply where the superstep may as well be run by itself: a panic
// is an error, and comes up again there.
func (l *loop) applyQuietly(t *tx, w *work) (state *pregel.State, tasks []*pregel.Task, err error) {
	if p := contain.Call(func() { state, tasks, err = l.apply(t, w) }); p != nil {
		return nil, nil, p
	}
	return state, tasks, err
}

// passOn does so in the change by which a graph is entered, unless it may pause
// on the way.
func (l *loop) passOn(ctx context.Context, t *tx) {
	if l.paused() {
		return
	}
	next := l.ahead(l.state, l.tasks)
	l.ended = next.pass(ctx, t)
	l.succeed(next)
}

// passing runs the tasks of a superstep, one after the other. It returns false
// when that can't be done here: they have effects, one of them has failed, or
// time is up. They are run in the usual way then, as if they had not been.
func (l *loop) passing(ctx context.Context, w *work, began time.Time) bool {
	if l.graph().ByWorker() || l.graph().Spec.StepTimeout > 0 || l.session.stopping.Load() {
		return false
	}
	for _, t := range w.run {
		if !l.effectless(t.Node) {
			return false
		}
	}
	w.fresh = make([]outcome, 0, len(w.run))
	for _, t := range w.run {
		if ctx.Err() != nil || time.Since(began) > overdue {
			return false
		}
		o := outcome{task: t, attempt: 1}
		started := l.session.engine.now()
		l.perform(ctx, &o, 1)
		w.count(&o)
		asks := len(o.waiting) > 0 && l.level.root && o.failure == nil && !o.aborted
		if !asks && !o.finished() || o.result.Parent {
			return false
		}
		l.noted(&o, l.session.engine.now().Sub(started))
		w.fresh = append(w.fresh, o)
	}
	return true
}

// effectless reports whether a node does nothing but compute, and for no longer
// than expressions may. A question of the root graph is part of the change too.
func (l *loop) effectless(n *graph.Node) bool {
	kind := n.Kind == graph.KindExpr || n.Kind == graph.KindAsk && l.level.root
	return kind && n.Timeout <= 0 && n.IdleTimeout <= 0 && len(pregel.Routers(n)) == 0
}

// weight is how many bytes of values a checkpoint adds to those before it.
func weight(cp *checkpoint.Checkpoint) int {
	n := 0
	for i := range cp.Channels {
		ch := &cp.Channels[i]
		if ch.Stored != cp.Seq {
			continue
		}
		n += len(ch.Value)
		if ch.List != nil {
			for _, item := range ch.List.Items[len(ch.List.Items)-ch.List.Fresh:] {
				n += len(item)
			}
		}
	}
	return n
}
