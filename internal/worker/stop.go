package worker

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// await waits for the result of a task, and for a moment longer than ctx when
// the result is still of use.
func (h *Hub) await(ctx context.Context, j *job) pregel.Result {
	select {
	case r := <-j.done:
		j.lane.flush(ctx)
		return r
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, runtime.ErrSibling) && h.warn(j, cause) {
		late, stop := h.Outlast(ctx, j.task)
		defer stop()
		select {
		case r := <-j.done:
			j.lane.flush(late)
			return r
		case <-late.Done():
		}
	}
	h.withdraw(j, cause)
	select {
	case r := <-j.done: // it came in between, and the worker was told that it counts
		return r
	default:
		return failed("Cancelled", "the task was stopped: "+cause.Error())
	}
}

// Outlast returns a context that ends as ctx does, but only after the grace
// when a sibling of the task has failed: what is finished until then is kept.
// The deadline of ctx stays.
func (h *Hub) Outlast(ctx context.Context, t *runtime.Task) (context.Context, context.CancelFunc) {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	free := context.CancelFunc(func() {})
	if deadline, ok := ctx.Deadline(); ok {
		late, free = context.WithDeadline(late, deadline)
	}
	stop := context.AfterFunc(ctx, h.contained(func() {
		if errors.Is(context.Cause(ctx), runtime.ErrSibling) {
			linger(late, t.Unwanted, h.opts.Grace)
		}
		end(context.Cause(ctx))
	}))
	return late, func() {
		stop()
		free()
		end(context.Canceled)
	}
}

// linger waits for the grace, or until it is of no use.
func linger(ctx context.Context, unwanted <-chan struct{}, grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-unwanted:
	case <-ctx.Done():
	}
}

// warn tells the worker of a task to stop it. It reports false when there is
// nothing to wait for, because no worker can have begun. Routers and reducers
// are for a node that has finished: they are let be.
func (h *Hub) warn(j *job, cause error) bool {
	h.mu.Lock()
	defer h.unlockAndTell()
	switch {
	case j.stage == over, j.task.Router != "", j.task.Reduce != nil:
		return true
	case j.stage == queued, j.stage == withheld, j.session != nil && j.session.holdsBack(j.token):
		return false
	}
	j.last, j.stop, j.stopBy = true, cause.Error(), time.Now().Add(h.opts.Grace)
	if j.session != nil {
		j.session.sendCancel(j)
	}
	return true
}

// sendCancel tells the worker of a task that is being stopped so. mu is held.
func (s *Session) sendCancel(j *job) {
	s.send(Cancel{Token: j.token, Reason: j.stop, Grace: max(0, time.Until(j.stopBy))})
}

// withdraw gives a task up whose run does not want it any more. Its worker is
// not told to stop when another server goes on with the run.
func (h *Hub) withdraw(j *job, cause error) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if j.stage == over {
		return
	}
	s, token := j.session, j.token
	// A task that waits for a graph which it calls begins anew where that moves, unless its worker is there already.
	elsewhere := errors.Is(cause, runtime.ErrElsewhere) && !j.last && (s == nil || j.blocked == 0 || !errors.Is(cause, runtime.ErrMoved))
	unsent := s != nil && s.unsend(token)
	if elsewhere {
		h.asked.remove(j.task)
	}
	if elsewhere && !unsent && j.stage != queued {
		h.leaveBehind(j)
	}
	h.release(j)
	h.dequeue(j)
	h.end(j)
	if s == nil {
		return
	}
	if !unsent && !elsewhere && !j.last {
		s.send(Cancel{Token: token, Reason: cause.Error(), Grace: h.opts.Grace})
	}
	h.offerTo(s)
}
