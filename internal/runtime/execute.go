package runtime

import (
	"context"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// execute runs the tasks of a superstep and waits for all of them. A lone task
// runs in place. While some are still running, what the others did is made
// durable, so that no finished sibling ever runs again.
func (l *loop) execute(ctx context.Context, w *work) {
	if limit := l.graph().Spec.StepTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errStepTimeout)
		defer cancel()
	}
	if len(w.run) == 1 {
		o := l.attemptAll(ctx, w.run[0])
		w.add(o)
		for w.takeOver(&w.fresh[len(w.fresh)-1]) != nil {
			l.handle(ctx, w)
		}
		return
	}
	l.executeMany(ctx, w)
}

// handle records a failure durably and runs the error handler that takes over.
func (l *loop) handle(ctx context.Context, w *work) {
	last := &w.fresh[len(w.fresh)-1]
	h := w.takeOver(last)
	last.handled = true
	if !l.store(w) {
		return
	}
	w.add(l.attemptAll(ctx, h))
}

// takeOver returns the handler task of a failure, or nil.
func (w *work) takeOver(o *outcome) *pregel.Task {
	if w.err != nil || o.failure == nil || o.handled || o.aborted {
		return nil
	}
	return o.task.Handler(o.failure)
}

func (w *work) add(o outcome) {
	if o.result.Parent && o.failure == nil && w.command == nil {
		r := o.result
		w.command = &r
	}
	w.count(&o)
	o.late = w.cut && o.finished()
	w.fresh = append(w.fresh, o)
	w.gather()
}

// count fails a task by which the tasks of a superstep have written too much:
// what they write is kept until all of them have ended.
func (w *work) count(o *outcome) {
	w.bytes += pregel.WriteBytes(o.writes)
	if o.failure != nil {
		return
	}
	if err := w.loop.session.engine.opts.Limits.CheckWrites(w.bytes); err != nil {
		o.fail(&pregel.Failure{Failure: *updateFailure(err), Permanent: true})
	}
}

// executeMany runs tasks side by side. The first failure cuts the others off;
// what they finish all the same is kept.
func (l *loop) executeMany(ctx context.Context, w *work) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan outcome, len(w.run))
	slots := make(chan struct{}, l.session.engine.opts.Parallel)
	start := func(i int, t *pregel.Task) {
		slots <- struct{}{}
		l.session.employ(min(i, 1)) // the first is under way in place of the graph
		go contain.Func(func() {
			defer func() { <-slots }()
			ended <- l.attemptAll(ctx, t)
		}, func(p *contain.PanicError) { ended <- l.panickedTask(t, p) })()
	}
	running := len(w.run)
	go contain.Func(func() {
		for i, t := range w.run {
			start(i, t)
		}
	}, contain.Log(l.session.log, "starting tasks panicked"))()
	for running > 0 {
		w.add(<-ended)
		running--
		idle := 1
		for more := true; more && running > 0; {
			select {
			case o := <-ended:
				w.add(o)
				running--
				idle++
			default:
				more = false
			}
		}
		for _, h := range w.handlers() {
			if !l.store(w) {
				break
			}
			running++
			l.session.employ(1)
			go contain.Func(func() { ended <- l.attemptAll(ctx, h) },
				func(p *contain.PanicError) { ended <- l.panickedTask(h, p) })()
		}
		if w.failure() != nil || w.command != nil {
			w.cut = true
			cancel(ErrSibling)
		}
		if running > 0 && !l.store(w) {
			cancel(ErrSibling)
		}
		if running == 0 {
			idle-- // the graph is under way again
		}
		l.session.employ(-idle)
	}
}

// handlers marks the failures that an error handler takes over and returns
// the handlers' tasks.
func (w *work) handlers() []*pregel.Task {
	var out []*pregel.Task
	for i := range w.fresh {
		if h := w.takeOver(&w.fresh[i]); h != nil {
			w.fresh[i].handled = true
			out = append(out, h)
		}
	}
	return out
}

// store makes what has ended so far durable, and then visible. It reports
// false when the store failed.
func (l *loop) store(w *work) bool {
	if w.err != nil {
		return false
	}
	if len(w.fresh) == 0 {
		return true
	}
	err := l.commit(func(t *tx) error {
		l.report(t, w)
		return l.record(t, w)
	})
	if err != nil {
		w.err = err
		return false
	}
	w.stored = append(w.stored, w.fresh...)
	w.fresh, w.recorded, w.told = nil, true, true
	return true
}
