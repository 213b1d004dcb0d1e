// Package worker hands tasks to processes that dial graphd: it keeps their
// sessions, offers each task to one that has room for it, and takes back what
// a lost process leaves behind. It knows no wire; transport speaks for it.
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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Options tune a Hub. Zero fields mean the defaults that are named.
type Options struct {
	Beat     time.Duration // how often workers give a sign of life; 10 s
	LeaseTTL time.Duration // how long a task waits for a silent worker; 30 s
	// Held is how long a task that a worker brings along from an earlier server
	// is kept for the run to come back to; 60 s.
	Held time.Duration
	// Grace is how long a worker is told it has to stop a task, and how long its
	// result is waited for when another task of the superstep has failed; 5 s.
	Grace  time.Duration
	Losses int // workers a task may lose before it fails; 5
	Nacks  int // refusals of a task before it fails; 10
	// Workers is how many may be connected; 2000. Served is how many bytes what they
	// say of themselves may take; 32 MiB.
	Workers int
	Served  int64
	// Events is how many bytes of events may wait to be handed on to their runs, of
	// all tasks together, and Results of results that came on streams and wait for
	// their run; 64 MiB each.
	Events  int64
	Results int64
	// Key marks the leases. With the same key a restarted server, or another
	// replica, knows the leases of the one before; random when empty.
	Key    []byte
	Logger *zap.Logger // silent when nil
}

func (o Options) withDefaults() Options {
	o.Beat = cmp.Or(o.Beat, 10*time.Second)
	o.LeaseTTL = cmp.Or(o.LeaseTTL, 30*time.Second)
	o.Held = cmp.Or(o.Held, 60*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Losses = cmp.Or(o.Losses, 5)
	o.Nacks = cmp.Or(o.Nacks, 10)
	o.Workers = cmp.Or(o.Workers, 2000)
	o.Served = cmp.Or(o.Served, 32<<20)
	o.Events = cmp.Or(o.Events, 64<<20)
	o.Results = cmp.Or(o.Results, 64<<20)
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
	opts Options
	log  *zap.Logger
	life string // tells the leases of this process from those of an earlier one

	active   atomic.Int64  // tasks that are asked for
	waiting  atomic.Int64  // of them, those in a queue
	unserved atomic.Int64  // of these, those that no connected worker serves
	lost     atomic.Uint64 // leases that ended because a worker was silent, and calls of endpoints that were lost
	events   eventBytes

	mu         sync.Mutex
	sessions   map[string]*Session        // by worker
	jobs       map[string]*job            // by lease
	absent     map[string]map[string]*job // by worker and lease: tasks that wait for a worker to come back
	apart      map[*job]struct{}          // tasks of workers that have no stream here
	queues     map[route]*queue
	withheld   map[*job]struct{}
	serving    bool                 // the other servers are being told what is served
	servesAnew bool                 // and that has changed meanwhile
	claiming   bool                 // the other servers are about to be told of claims
	byKey      map[string]*job      // tasks that are asked for
	held       map[string]*heldTask // by place: leases of an earlier server, or of a run that went elsewhere
	settled    settled              // leases whose results were taken
	forgotten  settled              // leases of an earlier server that no run has asked for
	departed   settled              // leases of tasks whose run went elsewhere
	asked      asked                // tasks that a run has asked for here
	alone      []lonely
	said       int64 // bytes of what the workers say of themselves
	unread     int   // bytes that wait for workers to read them
	results    int64 // bytes of results that came on streams and wait
	order      uint64
	fence      uint64
	draining   bool
	peers      runtime.Peers // nil before the engine has asked for what workers take
}

var _ runtime.Executor = (*Hub)(nil)

// New makes a hub without workers.
func New(options Options) *Hub {
	options = options.withDefaults()
	return &Hub{
		opts: options, log: options.Logger, life: rand.Text()[:12], events: eventBytes{most: options.Events},
		sessions: make(map[string]*Session), jobs: make(map[string]*job), absent: make(map[string]map[string]*job),
		byKey: make(map[string]*job), withheld: make(map[*job]struct{}),
		queues: make(map[route]*queue), held: make(map[string]*heldTask),
		settled: settled{known: make(map[string]struct{})}, forgotten: settled{known: make(map[string]struct{})},
		departed: settled{known: make(map[string]struct{})}, apart: make(map[*job]struct{}),
		asked: asked{fences: make(map[string]uint64)},
	}
}

// contained is f for a goroutine or a timer of the hub: a panic ends f alone.
func (h *Hub) contained(f func()) func() {
	return contain.Func(f, contain.Log(h.log, "the hub of workers panicked"))
}

// Execute hands a task to a worker and waits for its result. It waits for a
// worker as long as ctx allows.
func (h *Hub) Execute(ctx context.Context, t *runtime.Task) pregel.Result {
	h.active.Add(1)
	defer h.active.Add(-1)
	j := h.newJob(ctx, t)
	j.calls.ended = func() { h.callsEnded(j) }
	h.admit(j)
	r := h.await(ctx, j)
	j.calls.end(ctx)
	j.telling.Wait()
	return r
}

// admit queues a task, or gives it to the worker that has it already.
func (h *Hub) admit(j *job) {
	h.mu.Lock()
	defer h.unlockAndTell()
	h.order++
	j.order = h.order
	h.asked.add(j.task)
	h.byKey[j.key] = j
	if h.adopt(j) || h.withhold(j) {
		return
	}
	h.enqueue(j)
	h.dispatch(j.route)
}

// Drain tells every worker that the server is about to leave. Tasks are still
// handed out, because the supersteps under way need them; runs whose tasks
// nobody can take are handed over.
func (h *Hub) Drain(left time.Duration, reason string) {
	h.mu.Lock()
	defer h.unlockAndTell()
	if h.draining {
		return
	}
	h.draining = true
	h.announce()
	for _, s := range h.sessions {
		s.send(Drain{Left: left, Reason: reason})
	}
	for r := range h.queues {
		h.notice(r)
	}
	for j := range h.withheld {
		h.leaveWithheld(j)
	}
	for j := range h.apart {
		h.seekHolder(j)
	}
	h.changeClaims()
}

// Quiet waits until no task is left, for as long as ctx allows. A superstep may
// need one task after another, so a short silence does not count.
func (h *Hub) Quiet(ctx context.Context) {
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
		if h.active.Load() > 0 {
			quiet = 0
		}
		timer.Reset(pause)
	}
}

// Close ends every session.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
	for _, s := range h.sessions {
		s.finish(runtime.Errorf(runtime.ReasonServerDraining, "the server is shutting down; connect to another one"))
	}
	for _, held := range h.held {
		held.timer.Stop()
	}
}

// Workers lists the connected workers by id.
func (h *Hub) Workers(context.Context) ([]runtime.Worker, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]runtime.Worker, 0, len(h.sessions))
	for _, s := range h.sessions {
		out = append(out, s.describe())
	}
	slices.SortFunc(out, func(a, b runtime.Worker) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Waiting says how many tasks wait: because no connected worker serves them, and
// because those that do have no room. The former include those whose runs have given
// their places up.
func (h *Hub) Waiting() (unserved, busy int) {
	unserved = int(max(0, h.unserved.Load()))
	busy = max(0, int(h.waiting.Load())-unserved)
	h.mu.Lock()
	peers := h.peers
	h.mu.Unlock()
	if peers != nil {
		unserved += peers.Unserved()
	}
	return unserved, busy
}

// Lost says how often a worker, or an endpoint, that had a task was lost.
func (h *Hub) Lost() uint64 { return h.lost.Load() }

func failed(kind, message string) pregel.Result {
	return pregel.Result{Failure: &pregel.Failure{Failure: checkpoint.Failure{
		Reason: runtime.FailedNode, Type: kind, Message: message,
	}}}
}

func leaseLost(task string) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTaskLeaseLost,
		"the lease is not valid any more: the task was given to another worker, cancelled or finished").With("taskId", task)
}
