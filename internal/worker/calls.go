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

// calls are the graphs that a task has called. A call that is repeated waits
// for the same run of the graph.
type calls struct {
	parent context.Context //nolint:containedctx // the calls end with the task, not with who asks
	host   runtime.Host
	log    *zap.Logger
	ended  func() // is called when the last one under way has ended; nil = no hub waits for that

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // of the delivery
	cancel  context.CancelCauseFunc
	byIndex map[int]*called
	live    int
	running sync.WaitGroup
	over    bool
}

type called struct {
	call   runtime.GraphCall
	result runtime.CallResult
	err    error
	done   chan struct{}
}

var errTaskOver = errors.New("the calling task is over")

func newCalls(ctx context.Context, host runtime.Host, log *zap.Logger) *calls {
	return &calls{parent: ctx, host: host, log: log}
}

// call runs a graph, or waits for the run that an earlier call began.
func (c *calls) call(ctx context.Context, g runtime.GraphCall) (runtime.CallResult, error) {
	run, err := c.begin(g)
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

func (c *calls) begin(g runtime.GraphCall) (*called, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.host == nil {
		return nil, leaseLost("")
	}
	if run := c.byIndex[g.Index]; run != nil {
		if run.call.Graph != g.Graph {
			return nil, runtime.Errorf(runtime.ReasonInvalidField, "call %d of the task is of graph %q", g.Index, run.call.Graph).
				InField("call_index", "must differ for each call of the task")
		}
		return run, nil
	}
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(c.parent))
		c.byIndex = make(map[int]*called)
	}
	run := &called{call: g, done: make(chan struct{})}
	c.byIndex[g.Index] = run
	c.live++
	c.running.Add(1)
	in := c.ctx
	go contain.Func(func() {
		defer c.running.Done()
		defer c.finish(run)
		c.perform(in, run)
	}, contain.Log(c.log, "a call of a graph panicked"))()
	return run, nil
}

// finish notes that a called graph has ended.
func (c *calls) finish(run *called) {
	c.mu.Lock()
	c.live--
	last := c.live == 0
	c.mu.Unlock()
	close(run.done)
	if last && c.ended != nil {
		c.ended()
	}
}

// underWay reports whether a called graph is at work.
func (c *calls) underWay() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live > 0
}

// perform runs the called graph. A panic is the failure of the call.
func (c *calls) perform(ctx context.Context, run *called) {
	if p := contain.Call(func() { run.result, run.err = c.host.Call(ctx, run.call) }); p != nil {
		c.log.Error("a called graph panicked; the call fails", p.Fields()...)
		run.err = runtime.Errorf(runtime.ReasonInternal, "the engine failed; the operator's log says why").Because(p)
	}
}

// idle reports whether the task has called no graph.
func (c *calls) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx == nil
}

// restart stops every called graph, so that the task can be run again.
func (c *calls) restart() {
	c.mu.Lock()
	cancel := c.cancel
	c.over = true
	c.mu.Unlock()
	if cancel != nil {
		cancel(errTaskOver)
	}
	c.running.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.cancel, c.byIndex, c.over = nil, nil, nil, false
}

// end stops every called graph for good, with the cause of ctx if it has ended,
// and waits for them.
func (c *calls) end(ctx context.Context) {
	c.mu.Lock()
	c.over = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(cmp.Or(context.Cause(ctx), errTaskOver))
	}
	c.running.Wait()
}

// Fail ends a task that can't even be sent to its worker.
func (h *Hub) Fail(token string, r pregel.Result) {
	h.mu.Lock()
	defer h.unlockAndTell()
	j := h.jobs[token]
	if j == nil || j.lent {
		return
	}
	s := j.session
	h.finish(j, r)
	if s != nil {
		h.offerTo(s)
	}
}

// Remember records a memo of a task; the first value stays.
func (h *Hub) Remember(ctx context.Context, token string, m checkpoint.Memo) (payload.JSON, bool, error) {
	for {
		j, err := h.find(ctx, token)
		if err != nil {
			return "", false, err
		}
		value, existed, err := rememberFor(ctx, j, m)
		switch h.standing(j, token) {
		case granted:
			return value, existed, comesBack(err)
		case undecided: // whether it is stored is known where the run goes on
		case lost:
			return "", false, leaseLost(j.task.ID)
		}
	}
}

// comesBack has the caller repeat what ended because this server is about to lose
// the run: the lease may go on at another one.
func comesBack(err error) error {
	if errors.Is(err, runtime.ErrElsewhere) || errors.Is(err, context.Canceled) {
		return runtime.Errorf(runtime.ReasonWaitTimeout, "the run goes on at another server, or here in a moment; repeat the call")
	}
	return err
}

// rememberFor records a memo of a task that is asked for.
func rememberFor(ctx context.Context, j *job, m checkpoint.Memo) (payload.JSON, bool, error) {
	if known, ok := j.recorded.find(&m); ok {
		return known, true, nil
	}
	value, existed, err := j.task.Effects.Remember(ctx, m)
	if err == nil {
		// Whoever gets the task next must see it, also when the worker that
		// recorded it has lost the task meanwhile and hears nothing of it.
		m.Value = value
		j.recorded.add(m)
	}
	return value, existed, err
}

// standing says what has become of a lease while something was done for its task.
func (h *Hub) standing(j *job, token string) claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.jobs[token] == j {
		return granted
	}
	l, ok := h.read(token)
	if !ok {
		return lost
	}
	if held := h.held[l.place()]; held != nil && held.token == token || h.jobs[token] != nil {
		return undecided
	}
	return lost
}

// hasLeft reports whether a task is not here any more because its run went to
// another server, where the worker may have it still.
func (h *Hub) hasLeft(token string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.jobs[token] == nil && h.departed.has(token)
}

// Call runs a graph inside a task.
func (h *Hub) Call(ctx context.Context, token string, g runtime.GraphCall) (runtime.CallResult, error) {
	for {
		j, err := h.find(ctx, token)
		if err != nil {
			return runtime.CallResult{}, err
		}
		h.block(j, &g)
		r, err := j.calls.call(ctx, g)
		h.mu.Lock()
		j.unblock()
		h.mu.Unlock()
		switch h.standing(j, token) {
		case granted:
			return r, comesBack(err)
		case undecided: // the run goes on elsewhere, or here under another lease
			if h.hasLeft(token) {
				return runtime.CallResult{}, notTakenUp(j.task.ID)
			}
		case lost:
			return runtime.CallResult{}, leaseLost(j.task.ID)
		}
	}
}

// block notes that a task waits for a graph that it calls. It takes no room
// from others while it does: the graph's nodes may need the same worker. A
// graph without a version is that which the worker has registered.
func (h *Hub) block(j *job, g *runtime.GraphCall) {
	h.mu.Lock()
	defer h.unlockAndTell()
	j.blocked++
	s := j.session
	if s == nil {
		return
	}
	if j.blocked == 1 {
		s.blocked++
	}
	for _, x := range s.hello.Serves {
		if g.Version == "" && x.Graph == g.Graph && x.Node == "" {
			g.Version = x.Version
		}
	}
	h.offerTo(s)
}

// unblock notes that a call of a task has ended. mu is held.
func (j *job) unblock() {
	if j.blocked--; j.blocked == 0 && j.session != nil {
		j.session.blocked--
	}
}

// Loan is the lease of a task that runs on an endpoint.
type Loan struct {
	Assignment Assignment

	hub *Hub
	job *job
}

// Lend leases a task to an endpoint, so that the node can record memos, which
// are put to those of earlier deliveries, and call graphs. It holds until Return.
// lost says that an earlier delivery was lost, which readers are told.
func (h *Hub) Lend(ctx context.Context, t *runtime.Task, delivery int, lost bool, memos *Memos) *Loan {
	j := h.newJob(ctx, t)
	j.recorded = memos
	if lost {
		j.lane.mark(runtime.EventLost)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	j.lent, j.stage, j.deliveries = true, started, delivery
	j.token = h.sign(j)
	h.jobs[j.token] = j
	return &Loan{Assignment: j.assignment(h.opts.LeaseTTL), hub: h, job: j}
}

// CountLoss counts an endpoint that was lost while it may have run a task.
func (h *Hub) CountLoss() { h.lost.Add(1) }

// Emit hands on events of the node. It waits until there is room for those that
// must be kept.
func (l *Loan) Emit(ctx context.Context, events []runtime.Emission, dropped uint64) (flooded bool) {
	l.job.lane.admit(ctx.Done(), events)
	_, flooded = l.job.lane.put(events, dropped)
	return flooded
}

// Return ends the lease. It waits for the graphs that the node has called, and
// for its events.
func (l *Loan) Return(ctx context.Context) {
	l.hub.mu.Lock()
	l.hub.release(l.job)
	l.job.stage = over
	l.hub.mu.Unlock()
	l.job.lane.flush(ctx)
	l.job.calls.end(ctx)
}
