package worker

import (
	"context"
	"errors"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/attempt"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// awaitResult waits for the result of a task, and for a moment longer than ctx when
// the result is still of use.
func (h *Hub) awaitResult(ctx context.Context, j *job) pregel.Result {
	select {
	case r := <-j.result:
		j.events.CloseAndFlush(ctx)
		return r
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, runtime.ErrSiblingFailed) && h.requestStop(j, cause) {
		late, stop := h.GraceContext(ctx, j.task)
		defer stop()
		select {
		case r := <-j.result:
			j.events.CloseAndFlush(late)
			return r
		case <-late.Done():
		}
	}
	h.withdrawJob(j, cause)
	select {
	case r := <-j.result: // the result arrived meanwhile, and the worker has its acceptance
		return r
	default:
		return nodeFailure("Cancelled", "the task was stopped: "+cause.Error())
	}
}

// GraceContext returns a context that ends as ctx does, but only after the grace
// when a sibling of the task has failed. Work that is finished by then is kept.
// The deadline of ctx stays.
func (h *Hub) GraceContext(ctx context.Context, t *runtime.Task) (context.Context, context.CancelFunc) {
	return attempt.NewGraceContext(ctx, t.Unwanted, h.opts.StopGrace, h.log)
}

// requestStop asks the worker of a task to stop it. It reports false when no
// worker can have begun, so that the caller need not wait. It does not stop
// routers and reducers, which serve a node that has finished.
func (h *Hub) requestStop(j *job, cause error) bool {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	switch {
	case j.stage == stageOver, j.task.Router != "", j.task.Reduce != nil:
		return true
	case j.stage == stageQueued, j.stage == stageWithheld, j.session != nil && j.session.outbox.HasTask(j.token):
		return false
	}
	j.isStopping, j.stopReason, j.stopDeadline = true, cause.Error(), time.Now().Add(h.opts.StopGrace)
	if j.session != nil {
		j.session.sendCancel(j)
	}
	return true
}

// sendCancel asks the worker to stop a task. mu is held.
func (s *Session) sendCancel(j *job) {
	s.outbox.AddMessage(message.TaskCancel{Token: j.token, Reason: j.stopReason, Grace: max(0, time.Until(j.stopDeadline))})
}

// withdrawJob removes a task that its run does not want any more. It does not
// stop the worker when another server continues the run.
func (h *Hub) withdrawJob(j *job, cause error) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.stage == stageOver {
		return
	}
	s, token := j.session, j.token
	// A task that waits for a graph which it calls begins anew where that moves, unless its worker is there already.
	elsewhere := errors.Is(cause, runtime.ErrElsewhere) && !j.isStopping && (s == nil || j.pendingCalls == 0 || !errors.Is(cause, runtime.ErrMoved))
	unsent := s != nil && s.outbox.RemoveTask(token)
	if elsewhere {
		d.history.RemoveRequest(j.task)
	}
	switch {
	case !elsewhere || unsent || j.stage == stageQueued:
	case j.stage == stageWithheld:
		j.markUnresolved()
	default:
		d.retainDeparted(j)
	}
	d.endJob(j)
	if s == nil {
		return
	}
	if !unsent && !elsewhere && !j.isStopping {
		s.outbox.AddMessage(message.TaskCancel{Token: token, Reason: cause.Error(), Grace: h.opts.StopGrace})
	}
	d.offerOldestTo(s)
}
