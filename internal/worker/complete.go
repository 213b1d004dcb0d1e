package worker

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/worker/inbox"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/outbox"
)

// CompleteTask accepts the result of a task. The error is a *runtime.Error:
// TASK_LEASE_LOST, or WAIT_TIMEOUT when the caller should repeat the call.
func (h *Hub) CompleteTask(ctx context.Context, c message.Completion) (message.Receipt, error) {
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

// tryComplete accepts the result for the task that the run asks for now. It
// reports false when the run has moved meanwhile and may come back.
func (h *Hub) tryComplete(ctx context.Context, c message.Completion) (r message.Receipt, over bool, err error) {
	j, err := h.waitForJob(ctx, c.Token)
	if err != nil {
		if r, known := h.repeatReceipt(c); known {
			return r, true, nil
		}
		return message.Receipt{}, true, err
	}
	if j.isOnEndpoint {
		return message.Receipt{}, true, lease.NewLostError(j.task.ID)
	}
	if c.EventsOnStream > 0 && h.hasConnectedWorker(j) {
		j.events.WaitForEvents(ctx, c.EventsOnStream)
	}
	j.events.WaitForRoom(ctx.Done(), c.Events)
	s, waiting, taken := h.completeIfLeased(j, c)
	switch {
	case taken && waiting != nil:
		return message.Receipt{Next: h.waitForNextTask(ctx, s, waiting)}, true, nil
	case taken:
		return message.Receipt{}, true, nil
	}
	if r, known := h.repeatReceipt(c); known {
		return r, true, nil
	}
	return message.Receipt{}, h.leaseState(j, c.Token) == claimLost, lease.NewLostError(j.task.ID)
}

// hasConnectedWorker reports whether events of a task may still be on their way: they
// don't outlive the stream that they were sent on.
func (h *Hub) hasConnectedWorker(j *job) bool {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	return j.session != nil
}

// repeatReceipt answers a completion whose result was applied before, with the next
// task of the first answer until the worker gives a sign of life for that task.
func (h *Hub) repeatReceipt(c message.Completion) (message.Receipt, bool) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.history.IsCompleted(c.Token) {
		return message.Receipt{}, false
	}
	r := message.Receipt{IsDuplicate: true}
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
func (h *Hub) completeIfLeased(j *job, c message.Completion) (s *Session, waiting *outbox.WaitingCall, taken bool) {
	d := h.dispatcher
	d.updateState(func() []notice {
		if d.jobsByLease[c.Token] != j {
			return nil
		}
		s, taken = j.session, true
		if c.WantsNext && s != nil && !c.IsRefused {
			waiting = &outbox.WaitingCall{CompletedLease: c.Token, Thread: j.task.Thread, NextTask: make(chan message.Assignment, 1)}
		}
		return d.applyCompletion(j, c, waiting)
	})
	return s, waiting, taken
}

// HandleCompletion accepts a result from the stream, as Hub.CompleteTask does, and
// answers on the stream. It does not wait: a goroutine does the waiting.
func (s *Session) HandleCompletion(ctx context.Context, c message.Completion) {
	if s.tryCompleteNow(c) {
		return
	}
	if err := s.hub.checkHolder(c.Token, holderOf(&s.profile.Hello)); err != nil {
		s.outbox.AddMessage(message.CompletionReply{Token: c.Token, Err: err})
		return
	}
	if !s.hub.results.ReserveResult(c) {
		limit := s.hub.opts.MaxWaitingResultBytes
		refusal := runtime.Errorf(runtime.ReasonTooManyRequests,
			"the server holds as many bytes of results that wait as it may, %d; call CompleteTask", limit).
			WithLimit("max-waiting-results", limit, 0)
		s.outbox.AddMessage(message.CompletionReply{Token: c.Token, Err: refusal})
		return
	}
	go contain.Func(func() {
		defer s.hub.results.ReleaseResult(c)
		r, err := s.hub.CompleteTask(ctx, c)
		s.outbox.AddMessage(message.CompletionReply{Token: c.Token, Receipt: r, Err: err})
	}, func(p *contain.PanicError) {
		s.hub.log.Error("taking a result panicked", p.Fields()...)
		s.outbox.AddMessage(message.CompletionReply{Token: c.Token, Err: runtime.Errorf(runtime.ReasonInternal, "the result could not be taken").WithCause(p)})
	})()
}

// tryCompleteNow accepts the result of a task of this session, if only the
// next task has to be awaited.
func (s *Session) tryCompleteNow(c message.Completion) (taken bool) {
	d := s.dispatcher
	d.updateState(func() []notice {
		j := s.capacity.jobs[c.Token]
		if j == nil || c.EventsOnStream > 0 || inbox.HasDurable(c.Events) && j.events.RoomSignal() != nil {
			return nil
		}
		taken = true
		if !c.WantsNext || c.IsRefused {
			list := d.applyCompletion(j, c, nil)
			s.outbox.AddMessage(message.CompletionReply{Token: c.Token})
			return list
		}
		p := &outbox.WaitingCall{CompletedLease: c.Token, Thread: j.task.Thread, Deadline: time.Now().Add(outbox.NextTaskWait)}
		s.scheduleReply(p.Deadline)
		return d.applyCompletion(j, c, p)
	})
	return taken
}

// scheduleReply has results answered whose worker waits for another task in vain, at a
// deadline or before: a timer for each result would cost more than the answer. mu is held.
func (s *Session) scheduleReply(deadline time.Time) {
	switch {
	case s.isReplyScheduled || s.hasEnded:
		return
	case s.replyTimer == nil:
		s.replyTimer = time.AfterFunc(time.Until(deadline), s.dispatcher.containPanics(s.replyWithoutNext))
	default:
		s.replyTimer.Reset(time.Until(deadline))
	}
	s.isReplyScheduled = true
}

// replyWithoutNext answers the results whose worker has waited long enough.
func (s *Session) replyWithoutNext() {
	s.dispatcher.mu.Lock()
	defer s.dispatcher.mu.Unlock()
	s.isReplyScheduled = false
	overdue, next := s.waitingCalls.TakeOverdue(time.Now())
	for _, p := range overdue {
		s.outbox.AddMessage(message.CompletionReply{Token: p.CompletedLease})
	}
	if !next.IsZero() {
		s.scheduleReply(next)
	}
}

// waitForNextTask waits a moment for the next task. A task for a call that ended
// meanwhile is not lost: the repeated call gets it, or another worker when the
// lease ends.
func (h *Hub) waitForNextTask(ctx context.Context, s *Session, p *outbox.WaitingCall) *message.Assignment {
	timer := time.NewTimer(outbox.NextTaskWait)
	defer timer.Stop()
	select {
	case a := <-p.NextTask:
		return &a
	case <-timer.C:
	case <-s.Ended():
	case <-ctx.Done():
	}
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	s.waitingCalls.RemoveCall(p)
	select {
	case a := <-p.NextTask:
		if h.dispatcher.jobsByLease[a.Token] != nil {
			return &a
		}
	default:
	}
	return nil
}
