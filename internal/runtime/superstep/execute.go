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
func (s *superstep) executeTasks(ctx context.Context) {
	fr := s.frame
	if limit := fr.Graph().Spec.StepTimeout; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errStepTimeout)
		defer cancel()
	}
	if len(s.toRun) == 1 {
		o := fr.runWithRetries(ctx, s.toRun[0])
		s.addOutcome(o)
		for s.errorHandlerOf(&s.unstored[len(s.unstored)-1]) != nil {
			s.runErrorHandler(ctx)
		}
		return
	}
	s.executeParallel(ctx)
}

// runErrorHandler records a failure durably and runs the error handler that takes over.
func (s *superstep) runErrorHandler(ctx context.Context) {
	fr := s.frame
	last := &s.unstored[len(s.unstored)-1]
	h := s.errorHandlerOf(last)
	last.isHandled = true
	if !s.storeOutcomes() {
		return
	}
	s.addOutcome(fr.runWithRetries(ctx, h))
}

// errorHandlerOf returns the handler task of a failure, or nil.
func (s *superstep) errorHandlerOf(o *outcome) *pregel.Task {
	if s.storeErr != nil || o.failure == nil || o.isHandled || o.isAborted || isVersionRefusal(o.failure.Reason) {
		return nil
	}
	return o.task.HandlerTask(o.failure)
}

func (s *superstep) addOutcome(o outcome) {
	if o.result.ToParent && o.failure == nil && s.command == nil {
		r := o.result
		s.command = &r
	}
	s.countWrites(&o)
	o.isLate = s.isCutOff && o.isFinished()
	s.unstored = append(s.unstored, o)
	s.countHeldWrites()
}

// countWrites fails the task whose writes exceed the limit of the superstep: writes
// are kept until all tasks have ended.
func (s *superstep) countWrites(o *outcome) {
	s.writtenBytes += pregel.WriteBytes(o.writes)
	if o.failure != nil {
		return
	}
	if err := s.frame.env.Limits.CheckWriteBytes(s.writtenBytes); err != nil {
		o.setFailure(&pregel.Failure{Failure: *updateFailure(err), Permanent: true})
	}
}

// executeParallel runs tasks side by side. The first failure cuts the others off.
// Results that they return all the same are kept.
func (s *superstep) executeParallel(ctx context.Context) {
	fr := s.frame
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan outcome, len(s.toRun))
	slots := make(chan struct{}, fr.env.ParallelTasks)
	start := func(i int, t *pregel.Task) {
		slots <- struct{}{}
		fr.thread.Tasks.AddActive(min(i, 1)) // the first is under way in place of the graph
		go contain.Func(func() {
			defer func() { <-slots }()
			ended <- fr.runWithRetries(ctx, t)
		}, func(p *contain.PanicError) { ended <- fr.panickedOutcome(t, p) })()
	}
	running := len(s.toRun)
	go contain.Func(func() {
		for i, t := range s.toRun {
			start(i, t)
		}
	}, contain.LogPanic(fr.thread.Log, "starting tasks panicked"))()
	for running > 0 {
		s.addOutcome(<-ended)
		running--
		idle := 1
		for more := true; more && running > 0; {
			select {
			case o := <-ended:
				s.addOutcome(o)
				running--
				idle++
			default:
				more = false
			}
		}
		for _, h := range s.takeErrorHandlers() {
			if !s.storeOutcomes() {
				break
			}
			running++
			fr.thread.Tasks.AddActive(1)
			go contain.Func(func() { ended <- fr.runWithRetries(ctx, h) },
				func(p *contain.PanicError) { ended <- fr.panickedOutcome(h, p) })()
		}
		if s.firstFailure() != nil || s.command != nil {
			s.isCutOff = true
			cancel(runtime.ErrSiblingFailed)
		}
		if running > 0 && !s.storeOutcomes() {
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
func (s *superstep) takeErrorHandlers() []*pregel.Task {
	var out []*pregel.Task
	for i := range s.unstored {
		if h := s.errorHandlerOf(&s.unstored[i]); h != nil {
			s.unstored[i].isHandled = true
			out = append(out, h)
		}
	}
	return out
}

// storeOutcomes makes the outcomes so far durable, and then visible. It reports
// false when the store failed.
func (s *superstep) storeOutcomes() bool {
	fr := s.frame
	if s.storeErr != nil {
		return false
	}
	if len(s.unstored) == 0 {
		return true
	}
	err := fr.thread.commitChange(func(t *commit.Tx) error {
		s.emitTaskEvents(t)
		return s.putTaskRecords(t)
	})
	if err != nil {
		s.storeErr = err
		return false
	}
	s.stored = append(s.stored, s.unstored...)
	s.unstored, s.hasRecords, s.isReported = nil, true, true
	return true
}
