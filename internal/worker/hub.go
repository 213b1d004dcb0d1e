// Package worker hands tasks to processes that dial graphd: it keeps their
// sessions, offers each task to one with a free slot, and takes back what a lost
// process leaves behind. It knows no wire; transport speaks for it.
//
// A task is queued, or withheld while a worker of an earlier server may still run
// it, then offered under a lease, then started, until its result
// comes. Each time it changes hands it gets a new lease, so that the result of
// an older one cannot be applied any more.
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker/lease"
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
	// MaxWorkers is how many may be connected; 2000. Served is how many bytes what they
	// say of themselves may take; 32 MiB.
	MaxWorkers      int
	MaxProfileBytes int64
	// MaxEventBytes is how many bytes of events may wait to be handed on to their runs, of
	// all tasks together, and Results of results that came on streams and wait for
	// their run; 64 MiB each.
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
	opts   Options
	log    *zap.Logger
	signer *lease.Signer

	activeTasks   atomic.Int64  // requested tasks
	unservedTasks atomic.Int64  // of them, those that no connected worker serves
	workerLosses  atomic.Uint64 // leases that ended because a worker was silent, and calls of endpoints that were lost
	eventBudget   eventBudget
	results       resultBudget
	unreadBytes   atomic.Int64 // bytes that wait for workers to read them

	mu                 sync.Mutex
	sessions           *sessionTable
	jobsByLease        map[string]*job            // by lease
	detached           map[string]map[string]*job // by worker and lease: tasks that wait for a worker to come back
	disconnected       map[*job]struct{}          // tasks of workers that have no stream here
	queue              *queue.Queue[*job, *capacity]
	withheld           map[*job]struct{}
	isPublishing       bool            // the other servers are being told what is served
	mustPublishAgain   bool            // and that has changed meanwhile
	areClaimsScheduled bool            // the claims are about to be published
	jobsByKey          map[string]*job // tasks that are asked for
	history            *lease.History
	reclaims           *lease.Reclaims[Session] // leases of an earlier server, or of a run that went elsewhere
	notices            []runNotice
	lastOrder          uint64
	isDraining         bool
	peers              runtime.Peers // nil before the engine has asked for what workers take
}

var _ runtime.Executor = (*Hub)(nil)

// New makes a hub without workers.
func New(options Options) *Hub {
	options = options.withDefaults()
	h := &Hub{
		opts: options, log: options.Logger, signer: lease.NewSigner(options.Key), history: lease.NewHistory(), eventBudget: eventBudget{maxBytes: options.MaxEventBytes},
		results:  resultBudget{maxBytes: options.MaxWaitingResultBytes},
		sessions: newSessionTable(options), jobsByLease: make(map[string]*job), detached: make(map[string]map[string]*job),
		jobsByKey: make(map[string]*job), withheld: make(map[*job]struct{}),
		queue: queue.New[*job, *capacity](), disconnected: make(map[*job]struct{}),
	}
	h.reclaims = lease.NewReclaims(h.history, h.startReclaimTimer, h.scheduleClaims)
	return h
}

// containPanics wraps f for a goroutine or a timer of the hub: a panic ends f
// alone.
func (h *Hub) containPanics(f func()) func() {
	return contain.Func(f, contain.LogPanic(h.log, "the hub of workers panicked"))
}

// Execute hands a task to a worker and waits for its result. It waits for a
// worker as long as ctx allows.
func (h *Hub) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	h.activeTasks.Add(1)
	defer h.activeTasks.Add(-1)
	j := h.newJob(ctx, t)
	j.calls.onIdle = func() { h.followHolderAfterCalls(j) }
	h.admitJob(j)
	r := h.awaitResult(ctx, j)
	j.calls.stopForGood(ctx)
	j.notifying.Wait()
	return r
}

// admitJob queues a task, or gives it to the worker that has it already.
func (h *Hub) admitJob(j *job) {
	h.mu.Lock()
	defer h.unlockAndNotify()
	h.lastOrder++
	j.order = h.lastOrder
	h.history.AddRequest(j.task)
	h.jobsByKey[j.key] = j
	if h.adoptReclaimed(j) || h.withholdJob(j) {
		return
	}
	h.enqueueJob(j)
	h.dispatchRoute(j.route)
}

// Drain tells every worker that the server is about to leave. Tasks are still
// handed out, because the supersteps under way need them; runs whose tasks no
// worker can take are handed off.
func (h *Hub) Drain(left time.Duration, reason string) {
	h.mu.Lock()
	defer h.unlockAndNotify()
	if h.isDraining {
		return
	}
	h.isDraining = true
	h.publishCapabilities()
	for s := range h.sessions.listSessions() {
		s.outbox.addMessage(DrainNotice{TimeLeft: left, Reason: reason})
	}
	for r := range h.queue.Routes() {
		h.noticeUnserved(r)
	}
	for j := range h.withheld {
		h.handOffWithheld(j)
	}
	for j := range h.disconnected {
		h.followHolder(j)
	}
	h.scheduleClaims()
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
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isDraining = true
	for s := range h.sessions.listSessions() {
		s.endSession(runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one"))
	}
	h.reclaims.StopTimers()
}

// Workers lists the connected workers by id.
func (h *Hub) Workers(context.Context) ([]runtime.Worker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions.describeWorkers(), nil
}

// WaitingTasks counts the tasks that wait: because no connected worker serves them,
// and because those that do have no free slot. The former include those of runs
// that gave their slot up.
func (h *Hub) WaitingTasks() (unserved, busy int) {
	unserved = int(max(0, h.unservedTasks.Load()))
	busy = max(0, h.queue.Len()-unserved)
	h.mu.Lock()
	peers := h.peers
	h.mu.Unlock()
	if peers != nil {
		unserved += peers.UnservedTasks()
	}
	return unserved, busy
}

// WorkerLosses counts how often a worker that had a task was lost.
func (h *Hub) WorkerLosses() uint64 { return h.workerLosses.Load() }

func nodeFailure(kind, message string) pregel.Result {
	return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: kind, Message: message,
	}}}
}

func leaseLostError(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTaskLeaseLost,
		"the lease is not valid any more: the task was given to another worker, cancelled or finished").With("taskId", task)
}
