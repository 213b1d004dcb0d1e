package attempt

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
	"github.com/graphd-dev/graphd/internal/worker/lease"
)

// GraphCalls are the graphs that a task has called. A call that is repeated waits
// for the same run of the graph.
type GraphCalls struct {
	parent context.Context //nolint:containedctx // the calls end with the task, not with the caller
	host   runtime.Host
	log    *zap.Logger
	onIdle func() // is called when the last running call has ended; nil = no hub waits for that

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

// NewGraphCalls makes the calls of a task, which end with ctx.
func NewGraphCalls(ctx context.Context, host runtime.Host, log *zap.Logger) *GraphCalls {
	return &GraphCalls{parent: ctx, host: host, log: log}
}

// NotifyIdle sets the function that is called whenever the last running call
// has ended.
func (c *GraphCalls) NotifyIdle(onIdle func()) { c.onIdle = onIdle }

// CallGraph runs a graph, or waits for the run that an earlier call began. Errors:
// *runtime.Error TASK_LEASE_LOST, INVALID_FIELD and INTERNAL, the cause of ctx, and
// those of runtime.Host.
func (c *GraphCalls) CallGraph(ctx context.Context, g runtime.GraphCall) (runtime.CallResult, error) {
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

// beginCall begins a call of a graph, or returns the call that has begun under its
// index.
func (c *GraphCalls) beginCall(g runtime.GraphCall) (*graphCall, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isOver || c.host == nil {
		return nil, lease.NewLostError("")
	}
	if run := c.byIndex[g.Index]; run != nil {
		if run.call.Graph != g.Graph {
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "call %d of the task is of graph %q", g.Index, tenant.ClientName(run.call.Graph)).
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

// finishCall removes a called graph that has ended.
func (c *GraphCalls) finishCall(run *graphCall) {
	c.mu.Lock()
	c.liveCount--
	last := c.liveCount == 0
	c.mu.Unlock()
	close(run.done)
	if last && c.onIdle != nil {
		c.onIdle()
	}
}

// HasLiveCalls reports whether a called graph is running.
func (c *GraphCalls) HasLiveCalls() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.liveCount > 0
}

// runCall runs the called graph. A panic is the failure of the call.
func (c *GraphCalls) runCall(ctx context.Context, run *graphCall) {
	if p := contain.Call(func() { run.result, run.err = c.host.CallGraph(ctx, run.call) }); p != nil {
		c.log.Error("a called graph panicked; the call fails", p.Fields()...)
		run.err = runtime.Errorf(runtime.ReasonInternal, "the engine failed; the operator's log says why").WithCause(p)
	}
}

// IsEmpty reports whether the task has called no graph.
func (c *GraphCalls) IsEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx == nil
}

// StopAndReset stops every called graph, so that the task can be run again.
func (c *GraphCalls) StopAndReset() {
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

// StopForGood stops every called graph for good, with the cause of ctx if it has ended,
// and waits for them.
func (c *GraphCalls) StopForGood(ctx context.Context) {
	c.mu.Lock()
	c.isOver = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(cmp.Or(context.Cause(ctx), errTaskOver))
	}
	c.running.Wait()
}
