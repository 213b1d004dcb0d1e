package worker

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/attempt"
	"github.com/graphd-dev/graphd/internal/worker/lease"
	"github.com/graphd-dev/graphd/internal/worker/message"
)

// FailTask ends a task that can't even be sent to its worker.
func (h *Hub) FailTask(token string, r pregel.Result) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobsByLease[token]
	if j == nil || j.isOnEndpoint {
		return
	}
	s := j.session
	d.finishJob(j, r)
	if s != nil {
		d.offerOldestTo(s)
	}
}

// CheckHolder refuses a call of a principal, "" = not known, in a tenant under a lease that
// was given to the worker of another principal, or in another tenant, as if no server had
// given it.
func (h *Hub) CheckHolder(token, owner, principal string) error {
	return h.checkHolder(token, lease.Holder{Tenant: owner, Principal: principal})
}

func (h *Hub) checkHolder(token string, by lease.Holder) error {
	if l, ok := h.dispatcher.signer.ParseToken(token); ok && !l.IsOf(by) {
		return lease.NewLostError("")
	}
	return nil
}

// RecordMemo records a memo of a task. The first value stays. Errors:
// *runtime.Error TASK_LEASE_LOST and WAIT_TIMEOUT, and those of runtime.Effects.
func (h *Hub) RecordMemo(ctx context.Context, token string, m checkpoint.Memo) (payload.JSON, bool, error) {
	for {
		j, err := h.waitForJob(ctx, token)
		if err != nil {
			return "", false, err
		}
		value, existed, err := j.memos.RecordMemo(ctx, j.task.Effects, m)
		switch h.leaseState(j, token) {
		case claimGranted:
			return value, existed, toRepeatableError(err)
		case claimUndecided: // the server that continues the run knows whether it is stored
		case claimLost:
			return "", false, lease.NewLostError(j.task.ID)
		}
	}
}

// toRepeatableError asks the caller to repeat a call that ended because this server
// is about to lose the run. The lease may continue at another server.
func toRepeatableError(err error) error {
	if errors.Is(err, runtime.ErrElsewhere) || errors.Is(err, context.Canceled) {
		return runtime.Errorf(runtime.ReasonWaitTimeout, "the run goes on at another server, or here in a moment; repeat the call")
	}
	return err
}

// leaseState returns the state of a lease during a call for its task.
func (h *Hub) leaseState(j *job, token string) claimResult {
	d := h.dispatcher
	l, ok := d.signer.ParseToken(token)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.jobsByLease[token] == j:
		return claimGranted
	case ok && (d.isUndecided(l) || d.jobsByLease[token] != nil):
		return claimUndecided
	}
	return claimLost
}

// hasLeft reports whether a task is not here any more because its run went to
// another server, where the worker may have it still.
func (h *Hub) hasLeft(token string) bool {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.jobsByLease[token] == nil && d.history.IsDeparted(token)
}

// CallGraph runs a graph inside a task. Errors: those of GraphCalls.CallGraph, and
// *runtime.Error WAIT_TIMEOUT.
func (h *Hub) CallGraph(ctx context.Context, token string, g runtime.GraphCall) (runtime.CallResult, error) {
	for {
		j, err := h.waitForJob(ctx, token)
		if err != nil {
			return runtime.CallResult{}, err
		}
		h.blockOnCall(j, &g)
		r, err := j.calls.CallGraph(ctx, g)
		h.unblockCall(j)
		switch h.leaseState(j, token) {
		case claimGranted:
			return r, toRepeatableError(err)
		case claimUndecided: // the run continues elsewhere, or here under another lease
			if h.hasLeft(token) {
				return runtime.CallResult{}, lease.NewNotTakenUpError(j.task.ID)
			}
		case claimLost:
			return runtime.CallResult{}, lease.NewLostError(j.task.ID)
		}
	}
}

// blockOnCall records that a task waits for a graph that it calls. Meanwhile it
// takes no slot of its worker: the nodes of the graph may need the same worker. A
// graph without a version is that which the worker has registered.
func (h *Hub) blockOnCall(j *job, g *runtime.GraphCall) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	j.beginPendingCall()
	s := j.session
	if s == nil {
		return
	}
	for _, x := range s.profile.Hello.Capabilities {
		if g.Version == "" && x.Graph == g.Graph && x.Node == "" {
			g.Version = x.Version
		}
	}
	d.offerOldestTo(s)
}

// unblockCall records that a call of a task has ended.
func (h *Hub) unblockCall(j *job) {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	j.endPendingCall()
}

// EndpointLease is the lease of a task that runs on an endpoint.
type EndpointLease struct {
	Assignment message.Assignment

	dispatcher *dispatcher
	job        *job
}

// LeaseToEndpoint leases a task to an endpoint, so that the node can record memos,
// which are added to those of earlier deliveries, and call graphs. The lease lasts
// until End. lost is true when an earlier delivery was lost; followers get an event
// for it.
func (h *Hub) LeaseToEndpoint(ctx context.Context, t *runtime.Task, delivery int, lost bool, memos *attempt.Memos) *EndpointLease {
	j := newJob(ctx, t, h.events, h.log)
	j.memos = memos
	if lost {
		j.events.AddMarker(runtime.EventWorkerLost)
	}
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	j.isOnEndpoint, j.stage, j.deliveries = true, stageStarted, delivery
	j.lease = d.signer.SignLease(t, j.key, "")
	j.token = j.lease.Token
	d.jobsByLease[j.token] = j
	return &EndpointLease{Assignment: j.newAssignment(h.opts.LeaseTTL), dispatcher: d, job: j}
}

// EmitEvents delivers events of the node. It waits until there is room for durable
// events.
func (l *EndpointLease) EmitEvents(ctx context.Context, events []runtime.Emission, dropped uint64) (flooded bool) {
	l.job.events.WaitForRoom(ctx.Done(), events)
	_, flooded = l.job.events.AddEvents(events, dropped)
	return flooded
}

// End ends the lease. It waits for the graphs that the node has called, and
// for its events.
func (l *EndpointLease) End(ctx context.Context) {
	l.endLease()
	l.job.events.CloseAndFlush(ctx)
	l.job.calls.StopForGood(ctx)
}

func (l *EndpointLease) endLease() {
	l.dispatcher.mu.Lock()
	defer l.dispatcher.mu.Unlock()
	l.dispatcher.releaseLease(l.job)
	l.job.stage = stageOver
}
