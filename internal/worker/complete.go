package worker

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Completion is how a task ended, in the words of its worker.
type Completion struct {
	Token          string
	Result         pregel.Result
	IsRefused      bool               // the worker does not have the node; Result says why
	Events         []runtime.Emission // the last ones
	DroppedEvents  uint64
	EventsOnStream uint64 // sent on the stream
	WantsNext      bool   // the worker waits a moment for another task
	Bytes          int    // of all that
}

// Receipt is the answer to a completion.
type Receipt struct {
	IsDuplicate bool        // the lease had its result already
	Next        *Assignment // another task for the worker, nil for none
}

// CompleteTask takes the result of a task. The error is an *runtime.Error:
// TASK_LEASE_LOST, or WAIT_TIMEOUT when the call should be repeated.
func (h *Hub) CompleteTask(ctx context.Context, c Completion) (Receipt, error) {
	if r, known := h.repeatReceipt(c); known {
		return r, nil
	}
	for {
		r, over, err := h.tryComplete(ctx, c)
		if over {
			return r, err
		}
	}
}

// tryComplete takes the result for the task as it is asked for now. It reports
// false when the run has gone elsewhere meanwhile and may come back.
func (h *Hub) tryComplete(ctx context.Context, c Completion) (r Receipt, over bool, err error) {
	j, err := h.waitForJob(ctx, c.Token)
	if err != nil {
		if r, known := h.repeatReceipt(c); known {
			return r, true, nil
		}
		return Receipt{}, true, err
	}
	if j.isOnEndpoint {
		return Receipt{}, true, leaseLostError(j.task.ID)
	}
	if c.EventsOnStream > 0 && h.hasConnectedWorker(j) {
		j.events.waitForEvents(ctx, c.EventsOnStream)
	}
	j.events.waitForRoom(ctx.Done(), c.Events)
	s, waiting, taken := h.completeIfLeased(j, c)
	switch {
	case taken && waiting != nil:
		return Receipt{Next: h.waitForNextTask(ctx, s, waiting)}, true, nil
	case taken:
		return Receipt{}, true, nil
	}
	if r, known := h.repeatReceipt(c); known {
		return r, true, nil
	}
	return Receipt{}, h.leaseState(j, c.Token) == claimLost, leaseLostError(j.task.ID)
}

// hasConnectedWorker reports whether events of a task may still be on their way: they
// don't outlive the stream that they were sent on.
func (h *Hub) hasConnectedWorker(j *job) bool {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	return j.session != nil
}

// repeatReceipt answers a completion whose result was applied before, with the task
// of the first answer, as long as that shows no sign of life.
func (h *Hub) repeatReceipt(c Completion) (Receipt, bool) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.history.IsCompleted(c.Token) {
		return Receipt{}, false
	}
	r := Receipt{IsDuplicate: true}
	if !c.WantsNext {
		return r, true
	}
	for _, j := range d.jobsByLease {
		if j.answeredLease == c.Token && j.stage == stageOffered && !j.isStopping {
			a := j.newAssignment(h.opts.LeaseTTL)
			r.Next, j.isInCallAnswer = &a, true
		}
	}
	return r, true
}

// completeIfLeased ends a task with the result of its worker, unless the lease is
// lost.
func (h *Hub) completeIfLeased(j *job, c Completion) (s *Session, waiting *waitingCall, taken bool) {
	d := h.dispatcher
	d.update(func() []notice {
		if d.jobsByLease[c.Token] != j {
			return nil
		}
		s, taken = j.session, true
		if c.WantsNext && s != nil && !c.IsRefused {
			waiting = &waitingCall{completedLease: c.Token, thread: j.task.Thread, nextTask: make(chan Assignment, 1)}
		}
		return d.applyCompletion(j, c, waiting)
	})
	return s, waiting, taken
}

// HandleCompletion takes a result that came on the stream, as Hub.CompleteTask does, and
// answers on the stream. It does not wait: what has to is done beside the
// stream.
func (s *Session) HandleCompletion(ctx context.Context, c Completion) {
	if s.tryCompleteNow(c) {
		return
	}
	if !s.hub.results.reserveResult(c) {
		s.outbox.addMessage(CompletionReply{Token: c.Token, Err: runtime.Errorf(runtime.ReasonTooManyRequests,
			"the server holds as many bytes of results that wait as it may, %d; call CompleteTask", s.hub.opts.MaxWaitingResultBytes).WithLimit("max-waiting-results", s.hub.opts.MaxWaitingResultBytes, 0)})
		return
	}
	go contain.Func(func() {
		defer s.hub.results.releaseResult(c)
		r, err := s.hub.CompleteTask(ctx, c)
		s.outbox.addMessage(CompletionReply{Token: c.Token, Receipt: r, Err: err})
	}, func(p *contain.PanicError) {
		s.hub.log.Error("taking a result panicked", p.Fields()...)
		s.outbox.addMessage(CompletionReply{Token: c.Token, Err: runtime.Errorf(runtime.ReasonInternal, "the result could not be taken").WithCause(p)})
	})()
}

// tryCompleteNow takes the result of a task that this session has, if there is
// nothing to wait for but the next task.
func (s *Session) tryCompleteNow(c Completion) (taken bool) {
	d := s.dispatcher
	d.update(func() []notice {
		j := s.capacity.jobs[c.Token]
		if j == nil || c.EventsOnStream > 0 || hasDurable(c.Events) && j.events.roomSignal() != nil {
			return nil
		}
		taken = true
		if !c.WantsNext || c.IsRefused {
			list := d.applyCompletion(j, c, nil)
			s.outbox.addMessage(CompletionReply{Token: c.Token})
			return list
		}
		p := &waitingCall{completedLease: c.Token, thread: j.task.Thread}
		p.timer = time.AfterFunc(nextTaskWait, d.containPanics(func() { s.replyWithoutNext(p) }))
		return d.applyCompletion(j, c, p)
	})
	return taken
}

// replyWithoutNext answers a result whose worker has waited long enough.
func (s *Session) replyWithoutNext(p *waitingCall) {
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	if s.waitingCalls.removeCall(p) {
		s.outbox.addMessage(CompletionReply{Token: p.completedLease})
	}
}

// waitForNextTask waits a moment for the next task. A task that was given to a call
// whose caller has gone is not lost: the repeated call gets it, or another worker
// when the lease ends.
func (h *Hub) waitForNextTask(ctx context.Context, s *Session, p *waitingCall) *Assignment {
	timer := time.NewTimer(nextTaskWait)
	defer timer.Stop()
	select {
	case a := <-p.nextTask:
		return &a
	case <-timer.C:
	case <-s.Ended():
	case <-ctx.Done():
	}
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	s.waitingCalls.removeCall(p)
	select {
	case a := <-p.nextTask:
		if h.dispatcher.jobsByLease[a.Token] != nil {
			return &a
		}
	default:
	}
	return nil
}
