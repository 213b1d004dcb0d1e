package superstep

import (
	"context"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// executeTasks runs the tasks of a superstep and waits for all of them. A lone task runs
// in place. While some tasks are still running, the results of the others are made
// durable, so that no finished sibling ever runs again.
func (w *superstep) executeTasks(ctx context.Context) {
	fr := w.frame
	if limit := fr.Graph().Spec.StepTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errStepTimeout)
		defer cancel()
	}
	if len(w.toRun) == 1 {
		o := fr.runWithRetries(ctx, w.toRun[0])
		w.addOutcome(o)
		for w.errorHandlerOf(&w.unstored[len(w.unstored)-1]) != nil {
			w.runErrorHandler(ctx)
		}
		return
	}
	w.executeParallel(ctx)
}

// runErrorHandler records a failure durably and runs the error handler that takes over.
func (w *superstep) runErrorHandler(ctx context.Context) {
	fr := w.frame
	last := &w.unstored[len(w.unstored)-1]
	h := w.errorHandlerOf(last)
	last.isHandled = true
	if !w.storeOutcomes() {
		return
	}
	w.addOutcome(fr.runWithRetries(ctx, h))
}

// errorHandlerOf returns the handler task of a failure, or nil.
func (w *superstep) errorHandlerOf(o *outcome) *pregel.Task {
	if w.storeErr != nil || o.failure == nil || o.isHandled || o.isAborted || isVersionRefusal(o.failure.Reason) {
		return nil
	}
	return o.task.HandlerTask(o.failure)
}

func (w *superstep) addOutcome(o outcome) {
	if o.result.ToParent && o.failure == nil && w.command == nil {
		r := o.result
		w.command = &r
	}
	w.countWrites(&o)
	o.isLate = w.isCutOff && o.isFinished()
	w.unstored = append(w.unstored, o)
	w.countHeldWrites()
}

// countWrites fails the task whose writes exceed the limit of the superstep: writes
// are kept until all tasks have ended.
func (w *superstep) countWrites(o *outcome) {
	w.writtenBytes += pregel.WriteBytes(o.writes)
	if o.failure != nil {
		return
	}
	if err := w.frame.env.Limits.CheckWriteBytes(w.writtenBytes); err != nil {
		o.setFailure(&pregel.Failure{Failure: *updateFailure(err), Permanent: true})
	}
}

// executeParallel runs tasks side by side. The first failure cuts the others off.
// Results that they return all the same are kept.
func (w *superstep) executeParallel(ctx context.Context) {
	fr := w.frame
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan outcome, len(w.toRun))
	slots := make(chan struct{}, fr.env.ParallelTasks)
	start := func(i int, t *pregel.Task) {
		slots <- struct{}{}
		fr.thread.Tasks.AddActive(min(i, 1)) // the first is under way in place of the graph
		go contain.Func(func() {
			defer func() { <-slots }()
			ended <- fr.runWithRetries(ctx, t)
		}, func(p *contain.PanicError) { ended <- fr.panickedOutcome(t, p) })()
	}
	running := len(w.toRun)
	go contain.Func(func() {
		for i, t := range w.toRun {
			start(i, t)
		}
	}, contain.LogPanic(fr.thread.Log, "starting tasks panicked"))()
	for running > 0 {
		w.addOutcome(<-ended)
		running--
		idle := 1
		for more := true; more && running > 0; {
			select {
			case o := <-ended:
				w.addOutcome(o)
				running--
				idle++
			default:
				more = false
			}
		}
		for _, h := range w.takeErrorHandlers() {
			if !w.storeOutcomes() {
				break
			}
			running++
			fr.thread.Tasks.AddActive(1)
			go contain.Func(func() { ended <- fr.runWithRetries(ctx, h) },
				func(p *contain.PanicError) { ended <- fr.panickedOutcome(h, p) })()
		}
		if w.firstFailure() != nil || w.command != nil {
			w.isCutOff = true
			cancel(runtime.ErrSiblingFailed)
		}
		if running > 0 && !w.storeOutcomes() {
			cancel(runtime.ErrSiblingFailed)
		}
		if running == 0 {
			idle-- // the graph is under way again
		}
		fr.thread.Tasks.AddActive(-idle)
	}
}

// takeErrorHandlers marks the failures that an error handler takes over and returns
// the handlers' tasks.
func (w *superstep) takeErrorHandlers() []*pregel.Task {
	var out []*pregel.Task
	for i := range w.unstored {
		if h := w.errorHandlerOf(&w.unstored[i]); h != nil {
			w.unstored[i].isHandled = true
			out = append(out, h)
		}
	}
	return out
}

// storeOutcomes makes the outcomes so far durable, and then visible. It reports
// false when the store failed.
func (w *superstep) storeOutcomes() bool {
	fr := w.frame
	if w.storeErr != nil {
		return false
	}
	if len(w.unstored) == 0 {
		return true
	}
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		w.emitTaskEvents(t)
		return w.putTaskRecords(t)
	})
	if err != nil {
		w.storeErr = err
		return false
	}
	w.stored = append(w.stored, w.unstored...)
	w.unstored, w.hasRecords, w.isReported = nil, true, true
	return true
}
