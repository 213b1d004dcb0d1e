package worker

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// graphCalls are the graphs that a task has called. A call that is repeated waits
// for the same run of the graph.
type graphCalls struct {
	parent context.Context //nolint:containedctx // the calls end with the task, not with the caller
	host   runtime.Host
	log    *zap.Logger
	onIdle func() // is called when the last one under way has ended; nil = no hub waits for that

	mu        sync.Mutex
	ctx       context.Context //nolint:containedctx // of the delivery
	cancel    context.CancelCauseFunc
	byIndex   map[int]*graphCall
	liveCount int
	running   sync.WaitGroup
	isOver    bool
}

type graphCall struct {
	call   runtime.GraphCall
	result runtime.CallResult
	err    error
	done   chan struct{}
}

var errTaskOver = errors.New("the calling task is over")

func newGraphCalls(ctx context.Context, host runtime.Host, log *zap.Logger) *graphCalls {
	return &graphCalls{parent: ctx, host: host, log: log}
}

// callGraph runs a graph, or waits for the run that an earlier call began.
func (c *graphCalls) callGraph(ctx context.Context, g runtime.GraphCall) (runtime.CallResult, error) {
	run, err := c.beginCall(g)
	if err != nil {
		return runtime.CallResult{}, err
	}
	select {
	case <-run.done:
		return run.result, run.err
	case <-ctx.Done():
		return runtime.CallResult{}, context.Cause(ctx)
	}
}

func (c *graphCalls) beginCall(g runtime.GraphCall) (*graphCall, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isOver || c.host == nil {
		return nil, leaseLostError("")
	}
	if run := c.byIndex[g.Index]; run != nil {
		if run.call.Graph != g.Graph {
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "call %d of the task is of graph %q", g.Index, run.call.Graph).
				WithViolation("call_index", "must differ for each call of the task")
		}
		return run, nil
	}
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(c.parent))
		c.byIndex = make(map[int]*graphCall)
	}
	run := &graphCall{call: g, done: make(chan struct{})}
	c.byIndex[g.Index] = run
	c.liveCount++
	c.running.Add(1)
	in := c.ctx
	go contain.Func(func() {
		defer c.running.Done()
		defer c.finishCall(run)
		c.runCall(in, run)
	}, contain.LogPanic(c.log, "a call of a graph panicked"))()
	return run, nil
}

// finishCall notes that a called graph has ended.
func (c *graphCalls) finishCall(run *graphCall) {
	c.mu.Lock()
	c.liveCount--
	last := c.liveCount == 0
	c.mu.Unlock()
	close(run.done)
	if last && c.onIdle != nil {
		c.onIdle()
	}
}

// hasLiveCalls reports whether a called graph is running.
func (c *graphCalls) hasLiveCalls() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.liveCount > 0
}

// runCall runs the called graph. A panic is the failure of the call.
func (c *graphCalls) runCall(ctx context.Context, run *graphCall) {
	if p := contain.Call(func() { run.result, run.err = c.host.CallGraph(ctx, run.call) }); p != nil {
		c.log.Error("a called graph panicked; the call fails", p.Fields()...)
		run.err = runtime.Errorf(runtime.ReasonInternal, "the engine failed; the operator's log says why").WithCause(p)
	}
}

// isEmpty reports whether the task has called no graph.
func (c *graphCalls) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx == nil
}

// stopAndReset stops every called graph, so that the task can be run again.
func (c *graphCalls) stopAndReset() {
	c.mu.Lock()
	cancel := c.cancel
	c.isOver = true
	c.mu.Unlock()
	if cancel != nil {
		cancel(errTaskOver)
	}
	c.running.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.cancel, c.byIndex, c.isOver = nil, nil, nil, false
}

// stopForGood stops every called graph for good, with the cause of ctx if it has ended,
// and waits for them.
func (c *graphCalls) stopForGood(ctx context.Context) {
	c.mu.Lock()
	c.isOver = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(cmp.Or(context.Cause(ctx), errTaskOver))
	}
	c.running.Wait()
}

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

// RecordMemo records a memo of a task; the first value stays.
func (h *Hub) RecordMemo(ctx context.Context, token string, m checkpoint.Memo) (payload.JSON, bool, error) {
	for {
		j, err := h.waitForJob(ctx, token)
		if err != nil {
			return "", false, err
		}
		value, existed, err := recordMemoOf(ctx, j, m)
		switch h.leaseState(j, token) {
		case claimGranted:
			return value, existed, toRepeatableError(err)
		case claimUndecided: // whether it is stored is known where the run goes on
		case claimLost:
			return "", false, leaseLostError(j.task.ID)
		}
	}
}

// toRepeatableError asks the caller to repeat a call that ended because this server
// is about to lose the run: the lease may go on at another one.
func toRepeatableError(err error) error {
	if errors.Is(err, runtime.ErrElsewhere) || errors.Is(err, context.Canceled) {
		return runtime.Errorf(runtime.ReasonWaitTimeout, "the run goes on at another server, or here in a moment; repeat the call")
	}
	return err
}

// recordMemoOf records a memo of a task that is asked for.
func recordMemoOf(ctx context.Context, j *job, m checkpoint.Memo) (payload.JSON, bool, error) {
	if known, ok := j.memos.findMemo(&m); ok {
		return known, true, nil
	}
	value, existed, err := j.task.Effects.RecordMemo(ctx, m)
	if err == nil {
		// The next worker of the task must see it, also when the worker
		// that recorded it has lost the task meanwhile and is not told.
		m.Value = value
		j.memos.addMemo(m)
	}
	return value, existed, err
}

// leaseState reports what became of a lease during a call for its task.
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

// CallGraph runs a graph inside a task.
func (h *Hub) CallGraph(ctx context.Context, token string, g runtime.GraphCall) (runtime.CallResult, error) {
	for {
		j, err := h.waitForJob(ctx, token)
		if err != nil {
			return runtime.CallResult{}, err
		}
		h.blockOnCall(j, &g)
		r, err := j.calls.callGraph(ctx, g)
		h.unblockCall(j)
		switch h.leaseState(j, token) {
		case claimGranted:
			return r, toRepeatableError(err)
		case claimUndecided: // the run goes on elsewhere, or here under another lease
			if h.hasLeft(token) {
				return runtime.CallResult{}, notTakenUp(j.task.ID)
			}
		case claimLost:
			return runtime.CallResult{}, leaseLostError(j.task.ID)
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
	for _, x := range s.hello.Capabilities {
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
	Assignment Assignment

	dispatcher *dispatcher
	job        *job
}

// LeaseToEndpoint leases a task to an endpoint, so that the node can record memos,
// which are added to those of earlier deliveries, and call graphs. The lease lasts
// until End. lost says that an earlier delivery was lost, which followers are told.
func (h *Hub) LeaseToEndpoint(ctx context.Context, t *runtime.Task, delivery int, lost bool, memos *Memos) *EndpointLease {
	j := newJob(ctx, t, &h.eventBudget, h.log)
	j.memos = memos
	if lost {
		j.events.addMarker(runtime.EventWorkerLost)
	}
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	j.isOnEndpoint, j.stage, j.deliveries = true, stageStarted, delivery
	j.lease = d.signer.SignLease(t, j.key)
	j.token = j.lease.Token
	d.jobsByLease[j.token] = j
	return &EndpointLease{Assignment: j.newAssignment(h.opts.LeaseTTL), dispatcher: d, job: j}
}

// EmitEvents hands on events of the node. It waits until there is room for those that
// must be kept.
func (l *EndpointLease) EmitEvents(ctx context.Context, events []runtime.Emission, dropped uint64) (flooded bool) {
	l.job.events.waitForRoom(ctx.Done(), events)
	_, flooded = l.job.events.addEvents(events, dropped)
	return flooded
}

// End ends the lease. It waits for the graphs that the node has called, and
// for its events.
func (l *EndpointLease) End(ctx context.Context) {
	l.endLease()
	l.job.events.closeAndFlush(ctx)
	l.job.calls.stopForGood(ctx)
}

func (l *EndpointLease) endLease() {
	l.dispatcher.mu.Lock()
	defer l.dispatcher.mu.Unlock()
	l.dispatcher.releaseLease(l.job)
	l.job.stage = stageOver
}
