// Package worker hands tasks to processes that dial graphd: it keeps their
// sessions, offers each task to one with a free slot, and takes back what a lost
// process leaves behind. It knows no wire; transport speaks for it.
//
// A task is queued, or withheld while a worker of an earlier server may still run
// it, then offered under a lease, then started, until its result
// comes. Each time it changes hands it gets a new lease, so that the result of
// an older one cannot be applied any more.
//
// A Hub is what callers see, a Session one worker. Both change what is shared, the
// queue, the leases and the sessions, through one dispatcher, under one lock.
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/coverage"
	"github.com/graphd-dev/graphd/internal/worker/inbox"
	"github.com/graphd-dev/graphd/internal/worker/message"
	"github.com/graphd-dev/graphd/internal/worker/queue"
)

// Options tune a Hub. Zero fields mean the defaults that are named.
type Options struct {
	HeartbeatInterval time.Duration // how often workers give a sign of life; 10 s
	LeaseTTL          time.Duration // how long a task waits for a silent worker; 30 s
	// ReclaimTimeout is how long a task that a worker brings along from an earlier server
	// is kept for the run to come back to; 60 s.
	ReclaimTimeout time.Duration
	// StopGrace is how long a worker is told it has to stop a task, and how long its
	// result is waited for when another task of the superstep has failed; 5 s.
	StopGrace time.Duration
	MaxLosses int // workers a task may lose before it fails; 5
	MaxNacks  int // refusals of a task before it fails; 10
	// MaxWorkers is how many may be connected; 2000. MaxProfileBytes is how many bytes
	// what they say of themselves may take; 32 MiB.
	MaxWorkers      int
	MaxProfileBytes int64
	// MaxEventBytes is how many bytes of events may wait to be handed on to their runs, of
	// all tasks together, MaxWaitingResultBytes of results that came on streams and wait
	// for their run; 64 MiB each.
	MaxEventBytes         int64
	MaxWaitingResultBytes int64
	// Key marks the leases. With the same key a restarted server, or another
	// replica, knows the leases of the one before; random when empty.
	Key    []byte
	Logger *zap.Logger // silent when nil
}

func (o Options) withDefaults() Options {
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 10*time.Second)
	o.LeaseTTL = cmp.Or(o.LeaseTTL, 30*time.Second)
	o.ReclaimTimeout = cmp.Or(o.ReclaimTimeout, 60*time.Second)
	o.StopGrace = cmp.Or(o.StopGrace, 5*time.Second)
	o.MaxLosses = cmp.Or(o.MaxLosses, 5)
	o.MaxNacks = cmp.Or(o.MaxNacks, 10)
	o.MaxWorkers = cmp.Or(o.MaxWorkers, 2000)
	o.MaxProfileBytes = cmp.Or(o.MaxProfileBytes, 32<<20)
	o.MaxEventBytes = cmp.Or(o.MaxEventBytes, 64<<20)
	o.MaxWaitingResultBytes = cmp.Or(o.MaxWaitingResultBytes, 64<<20)
	if len(o.Key) == 0 {
		o.Key = []byte(rand.Text())
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// Hub runs remote nodes in connected workers. It is safe for concurrent use.
type Hub struct {
	opts         Options
	log          *zap.Logger
	dispatcher   *dispatcher
	capabilities *coverage.Publisher
	activeTasks  atomic.Int64 // requested tasks
	unreadBytes  atomic.Int64 // bytes that wait for workers to read them
	events       *inbox.EventBudget
	results      *inbox.ResultBudget
}

var (
	_ runtime.Executor = (*Hub)(nil)
	_ runtime.Workers  = (*Hub)(nil)
)

// New makes a hub without workers.
func New(options Options) *Hub {
	options = options.withDefaults()
	h := &Hub{
		opts: options, log: options.Logger, dispatcher: newDispatcher(options),
		events: inbox.NewEventBudget(options.MaxEventBytes), results: inbox.NewResultBudget(options.MaxWaitingResultBytes),
	}
	h.capabilities = coverage.NewPublisher(h.log, h.listServed)
	return h
}

// Execute hands a task to a worker and waits for its result. It waits for a
// worker as long as ctx allows.
func (h *Hub) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	h.activeTasks.Add(1)
	defer h.activeTasks.Add(-1)
	d := h.dispatcher
	j := newJob(ctx, t, h.events, h.log)
	j.calls.NotifyIdle(func() { d.update(func() []notice { return d.awaited.followDisconnected(j) }) })
	d.update(func() []notice { return d.admitJob(j) })
	r := h.awaitResult(ctx, j)
	j.calls.StopForGood(ctx)
	j.notifying.Wait()
	return r
}

// Drain tells every worker that the server is about to leave. Tasks are still
// handed out, because the supersteps under way need them; runs whose tasks no
// worker can take are handed off.
func (h *Hub) Drain(left time.Duration, reason string) {
	d := h.dispatcher
	if !h.beginDrain() {
		return
	}
	h.capabilities.PublishCapabilities()
	d.update(func() []notice {
		for s := range d.sessions.listSessions() {
			s.outbox.AddMessage(message.DrainNotice{TimeLeft: left, Reason: reason})
		}
		list := append(d.unserved.noticeAll(false), d.awaited.handOffAll()...)
		d.scheduleClaims()
		return list
	})
}

// beginDrain has the hub take no further worker. It reports false when it takes
// none already.
func (h *Hub) beginDrain() bool {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	if h.dispatcher.placement.isDraining {
		return false
	}
	h.dispatcher.placement.isDraining = true
	return true
}

// WaitIdle waits until no task is left, for as long as ctx allows. A superstep may
// need one task after another, so a short silence does not count.
func (h *Hub) WaitIdle(ctx context.Context) {
	const pause = 50 * time.Millisecond
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for quiet := 0; quiet < 2; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		quiet++
		if h.activeTasks.Load() > 0 {
			quiet = 0
		}
		timer.Reset(pause)
	}
}

// Close ends every session.
func (h *Hub) Close() {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	d.placement.isDraining = true
	for s := range d.sessions.listSessions() {
		s.endSession(runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one"))
	}
	d.reclaims.StopTimers()
}

// Workers lists the connected workers by id.
func (h *Hub) Workers(context.Context) ([]runtime.Worker, error) {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	return h.dispatcher.sessions.describeWorkers(), nil
}

// WaitingTasks counts the tasks that wait: because no connected worker serves them,
// and because those that do have no free slot. The former include those of runs
// that gave their slot up.
func (h *Hub) WaitingTasks() (unserved, busy int) {
	d := h.dispatcher
	unserved = int(max(0, d.unserved.count.Load()))
	busy = max(0, d.queue.Len()-unserved)
	d.mu.Lock()
	peers := d.placement.peers
	d.mu.Unlock()
	if peers != nil {
		unserved += peers.UnservedTasks()
	}
	return unserved, busy
}

// WorkerLosses counts how often a worker that had a task was lost.
func (h *Hub) WorkerLosses() uint64 { return h.dispatcher.workerLosses.Load() }

// CountEndpointLoss counts an endpoint that was lost while it may have run a task.
func (h *Hub) CountEndpointLoss() { h.dispatcher.workerLosses.Add(1) }

// SetPeers makes those known that are told what workers take: the engine, and by it the
// other servers on the same store, to which tasks may go that no worker here takes.
func (h *Hub) SetPeers(peers runtime.Peers) {
	h.dispatcher.mu.Lock()
	h.dispatcher.placement.peers = peers
	h.dispatcher.mu.Unlock()
	h.capabilities.PublishCapabilities()
}

// Covers reports whether a connected worker takes what is needed.
func (h *Hub) Covers(need checkpoint.Capability) bool {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.placement.isDraining && d.sessions.isServed(queue.Route{Graph: need.Graph, Version: need.Version, Node: need.Node})
}

// RecheckTasks checks all unserved tasks again, because the workers of other
// servers have changed.
func (h *Hub) RecheckTasks() {
	d := h.dispatcher
	d.update(func() []notice { return append(d.unserved.noticeAll(true), d.awaited.followAll()...) })
}

// listServed lists what each worker serves, and how much that is: nothing while the
// server drains.
func (h *Hub) listServed() (peers runtime.Peers, lists [][]checkpoint.Capability, sum int) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.placement.isDraining {
		lists, sum = d.sessions.listServed()
	}
	return d.placement.peers, lists, sum
}

// NeedsComparison reports whether a task has answers that must be compared with
// what the code asks: a process that does not compare must not get them.
func NeedsComparison(t *runtime.Task) bool { return queue.NeedsComparison(t) }

func nodeFailure(kind, text string) pregel.Result {
	return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: kind, Message: text,
	}}}
}

// EmitFloodFailure fails a task whose events can't all be kept.
func EmitFloodFailure() pregel.Result {
	r := nodeFailure("EmitFlood", "the node emitted more durable events than can be stored in time; emit fewer, or not durable ones")
	r.Failure.Permanent = true
	return r
}
