// Package worker runs tasks in processes that dial graphd. It keeps their
// sessions, offers each task to a worker with a free slot, and takes back the
// tasks of a lost worker. It knows no wire format: package transport has the
// streams.
//
// A task is queued, or withheld while a worker of an earlier server may still run
// it. Then it is offered under a lease, and then started, until its result
// arrives. Each time it changes hands it gets a new lease, so that a result under
// an older lease is refused.
//
// A Hub serves the engine, and a Session one worker. Both change the queue, the
// leases and the sessions through one dispatcher, under one lock.
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
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
	HeartbeatInterval time.Duration // interval of the workers' signs of life; 10 s
	LeaseTTL          time.Duration // time for which a task waits for a silent worker; 30 s
	// ReclaimTimeout is the time for which a task that a worker brings from an earlier
	// server is kept for its run; 60 s.
	ReclaimTimeout time.Duration
	// StopGrace is the time that a worker has to stop a task, and for which its
	// result is awaited when another task of the superstep has failed; 5 s.
	StopGrace time.Duration
	MaxLosses int // workers a task may lose before it fails; 5
	MaxNacks  int // refusals of a task before it fails; 10
	// MaxWorkers is the number of connected workers; 2000. MaxProfileBytes bounds the
	// size of all their profiles; 32 MiB.
	MaxWorkers      int
	MaxProfileBytes int64
	// MaxKeptBytes bounds the values that one worker keeps from one task to the next; 64 MiB,
	// negative = none.
	MaxKeptBytes int64
	// MaxEventBytes bounds the events of all tasks that wait for their runs.
	// MaxWaitingResultBytes bounds the results from streams that wait for their runs.
	// 64 MiB each.
	MaxEventBytes         int64
	MaxWaitingResultBytes int64
	// Key signs the leases. A restarted server, or another replica, with the
	// same key knows the leases of the earlier server; random when empty.
	Key    []byte
	Logger *zap.Logger // silent when nil
}

// withDefaults returns the options with a default for each field that is zero.
func (o Options) withDefaults() Options {
	o.HeartbeatInterval = cmp.Or(o.HeartbeatInterval, 10*time.Second)
	o.LeaseTTL = cmp.Or(o.LeaseTTL, 30*time.Second)
	o.ReclaimTimeout = cmp.Or(o.ReclaimTimeout, 60*time.Second)
	o.StopGrace = cmp.Or(o.StopGrace, 5*time.Second)
	o.MaxLosses = cmp.Or(o.MaxLosses, 5)
	o.MaxNacks = cmp.Or(o.MaxNacks, 10)
	o.MaxWorkers = cmp.Or(o.MaxWorkers, 2000)
	o.MaxProfileBytes = cmp.Or(o.MaxProfileBytes, 32<<20)
	o.MaxKeptBytes = cmp.Or(o.MaxKeptBytes, 64<<20)
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
	helloCount   atomic.Uint64
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

// Execute runs a task at a worker and returns the result. It waits for a
// worker until ctx ends.
func (h *Hub) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	h.activeTasks.Add(1)
	defer h.activeTasks.Add(-1)
	d := h.dispatcher
	j := newJob(ctx, t, h.events, h.log)
	j.calls.NotifyIdle(func() { d.updateState(func() []notice { return d.awaited.followDisconnected(j) }) })
	d.updateState(func() []notice { return d.admitJob(j) })
	r := h.awaitResult(ctx, j)
	j.calls.StopForGood(ctx)
	j.notifying.Wait()
	return r
}

// Drain announces to every worker that the server will stop. Tasks are still
// handed out, because the present supersteps need them. Runs whose tasks no
// worker can take are handed off.
func (h *Hub) Drain(left time.Duration, reason string) {
	d := h.dispatcher
	if !h.beginDrain() {
		return
	}
	h.capabilities.PublishCapabilities()
	d.updateState(func() []notice {
		for s := range d.profiles.Sessions() {
			s.outbox.AddMessage(message.DrainNotice{TimeLeft: left, Reason: reason})
		}
		list := append(d.unserved.noticeAll(false), d.awaited.handOffAll()...)
		d.scheduleClaims()
		return list
	})
}

// beginDrain makes the hub refuse new workers. It reports false when the hub
// drains already.
func (h *Hub) beginDrain() bool {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	if h.dispatcher.placement.isDraining {
		return false
	}
	h.dispatcher.placement.isDraining = true
	return true
}

// WaitIdle waits until no task is left, or until ctx ends. A superstep may need
// its tasks in turn, so a short pause without tasks does not count. Without a worker
// there is none, and a hub that drains gets none.
func (h *Hub) WaitIdle(ctx context.Context) {
	if h.activeTasks.Load() == 0 && !h.hasSessions() {
		return
	}
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

// hasSessions reports whether a worker is connected.
func (h *Hub) hasSessions() bool {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	for range h.dispatcher.profiles.Sessions() {
		return true
	}
	return false
}

// Close ends every session.
func (h *Hub) Close() {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	d.placement.isDraining = true
	for s := range d.profiles.Sessions() {
		s.endSession(runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one"))
	}
	d.reclaims.StopTimers()
}

// Workers lists the connected workers by id. The error is always nil.
func (h *Hub) Workers(context.Context) ([]runtime.Worker, error) {
	h.dispatcher.mu.Lock()
	defer h.dispatcher.mu.Unlock()
	all := []runtime.Worker{}
	for s := range h.dispatcher.profiles.Sessions() {
		w := s.profile.DescribeWorker()
		w.FreeSlots, w.LastHeartbeat = max(s.capacity.FreeSlots(), 0), s.lastHeard
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b runtime.Worker) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// WaitingTasks counts the waiting tasks: those that no connected worker serves, and
// those whose workers have no free slot. The former include the tasks of runs that
// have released their slots.
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

// WorkerLosses returns the number of times that a worker with a task was lost.
func (h *Hub) WorkerLosses() uint64 { return h.dispatcher.workerLosses.Load() }

// KeptValues returns the bytes of values that were not sent because workers keep them, and the number
// of tasks that were sent again because their workers lacked values.
func (h *Hub) KeptValues() (omittedBytes, resentTasks uint64) {
	c := &h.dispatcher.keptCounts
	return c.OmittedBytes.Load(), c.ResentTasks.Load()
}

// CountEndpointLoss counts an endpoint that was lost while it may have run a task.
func (h *Hub) CountEndpointLoss() { h.dispatcher.workerLosses.Add(1) }

// SetPeers sets the receivers of the workers' entries: the engine, and through it the
// other servers on the same store, which may take tasks that no worker here takes.
func (h *Hub) SetPeers(peers runtime.Peers) {
	h.dispatcher.mu.Lock()
	h.dispatcher.placement.peers = peers
	h.dispatcher.mu.Unlock()
	h.capabilities.PublishCapabilities()
}

// Covers reports whether a connected worker has a capability.
func (h *Hub) Covers(need checkpoint.Capability) bool {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.placement.isDraining && d.profiles.IsServed(queue.Route{Graph: need.Graph, Version: need.Version, Node: need.Node})
}

// RecheckTasks checks all unserved tasks again, because the workers of other
// servers have changed.
func (h *Hub) RecheckTasks() {
	d := h.dispatcher
	d.updateState(func() []notice { return append(d.unserved.noticeAll(true), d.awaited.followAll()...) })
}

// listServed lists the entries of each worker, and their number. It lists
// nothing while the server drains.
func (h *Hub) listServed() (peers runtime.Peers, lists [][]checkpoint.Capability, sum int) {
	d := h.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.placement.isDraining {
		lists, sum = d.profiles.ListServed()
	}
	return d.placement.peers, lists, sum
}

// NeedsComparison reports whether a task has answers that must be compared with
// the questions of the code. A process that does not compare must not get such
// answers.
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
