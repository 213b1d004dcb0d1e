package runtime

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/contain"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// Graphs finds compiled graphs.
type Graphs interface {
	// Graph returns a version of a graph, the newest for an empty version. The
	// error is an *Error: GRAPH_NOT_FOUND, GRAPH_VERSION_UNAVAILABLE, or
	// STORE_UNAVAILABLE when it had to be read and could not be.
	Graph(name, version string) (*graph.Graph, error)
}

// Schemas checks values against JSON Schemas.
type Schemas interface {
	// Check returns what is wrong with a value, place by place; nil when it
	// fits. The error says that the schema itself is broken or, an *Error, why
	// the check is refused. A check may have to wait until ctx ends.
	Check(ctx context.Context, schema, value payload.JSON) ([]Violation, error)
}

// Observer is told what happened, for metrics. It must not block. A name is a
// graph's; names, nodes, states and reasons are labels.
type Observer interface {
	RunStarted(name string) // admitted
	RunDriven(name string)  // taken up by this process, each time
	// RunEnded follows each RunDriven; state is "lost" when the run goes on
	// elsewhere without this process having ended its part.
	RunEnded(name, state string, took time.Duration)
	NodeEnded(name, node, outcome string, took time.Duration)
	CommitEnded(took time.Duration, err error)
	InterruptRaised(name, reason string)
	InterruptResolved(name, state string)
	// ThreadsPoisoned tells how many threads are put off now because the engine
	// fails whenever it takes them.
	ThreadsPoisoned(n int)
	// LiveBytes tells how many bytes the live runs of this process hold.
	LiveBytes(n int64)
	// RunPutOff tells that a run has ended here because live runs hold too much,
	// and waits for room; RunEnded follows.
	RunPutOff(name string)
}

// Options tune an engine. Zero fields mean the defaults that are named.
type Options struct {
	Owner         string        // name of this replica; random when empty
	Lease         time.Duration // how long a silent replica keeps a thread; 15 s
	StepLimit     int           // supersteps of a run when nobody says; 10 000
	Parallel      int           // tasks of one superstep at the same time; 64
	Together      int           // supersteps without effects that share a commit, 1 = none; 64
	MaxLive       int           // live runs in this process; 10 000
	MaxLiveBytes  int64         // bytes that they hold in states and writes; 256 MiB
	QueueLimit    int           // runs waiting behind one another; 64
	RecentEvents  int           // bytes of events kept for followers that have not read them; 64 MiB
	CopyBytes     int           // bytes of a thread that is copied; 64 MiB
	MemoBytes     int64         // bytes of memos that a task may record, see MemoBytes; 4 MiB
	Sweep         time.Duration // how often abandoned work is looked for; 1 s
	StoreAttempts int           // tries of a client's call that is not answered; 3
	StoreTimeout  time.Duration // how long a client's call waits for the store; 5 s
	// Poll is how often a follower looks for what other replicas wrote, 0 =
	// never: no other process writes to the store.
	Poll time.Duration
	// Workers are those that are attached to this server; nil when no node runs
	// in another process, or no other server shares the store.
	Workers    Workers
	EventLimit uint64 // events kept per thread, 0 = all
	// Limits bound values, states, and what a superstep writes: 4 MiB, 8 MiB,
	// 8 MiB and 4096 Sends.
	Limits pregel.Limits
	// Checkpoints is how many checkpoints a thread keeps when nothing is going on
	// in it, with the events since; some more as long as they are few, and those
	// that are needed. 0 = all.
	Checkpoints uint64
	Rest        time.Duration    // how long a thread is left alone before that; 1 min
	Logger      *zap.Logger      // silent when nil
	Observer    Observer         // none when nil
	Now         func() time.Time // the clock of this process; the store's counts
}

func (o Options) withDefaults() Options {
	or := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	orInt := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	or(&o.Lease, 15*time.Second)
	or(&o.Sweep, time.Second)
	or(&o.Rest, time.Minute)
	or(&o.StoreTimeout, 5*time.Second)
	orInt(&o.StepLimit, 10_000)
	orInt(&o.Parallel, 64)
	orInt(&o.Together, 64)
	orInt(&o.MaxLive, 10_000)
	o.MaxLiveBytes = cmp.Or(o.MaxLiveBytes, 256<<20)
	orInt(&o.QueueLimit, 64)
	orInt(&o.RecentEvents, 64<<20)
	orInt(&o.CopyBytes, 64<<20)
	o.MemoBytes = cmp.Or(o.MemoBytes, 4<<20)
	orInt(&o.StoreAttempts, 3)
	o.Limits.Value = cmp.Or(o.Limits.Value, 4<<20)
	o.Limits.State = cmp.Or(o.Limits.State, 8<<20)
	o.Limits.Writes = cmp.Or(o.Limits.Writes, 8<<20)
	orInt(&o.Limits.Sends, 4096)
	if o.Owner == "" {
		o.Owner = uuid.NewString()[:13]
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Engine runs graphs over the threads of one store. Several engines may share
// a store.
type Engine struct {
	id       string           // owner name in leases: replica and incarnation
	store    checkpoint.Store // the line
	line     *line
	executor Executor
	graphs   Graphs
	schemas  Schemas
	opts     Options
	observer Observer
	log      *zap.Logger
	now      func() time.Time // the store's time
	born     time.Time
	hub      *hub
	inbox    inbox
	reads    chan struct{}    // holds one value for each follower that reads the store
	large    chan struct{}    // as reads, for those that have met large events
	copying  chan struct{}    // holds a value while a thread is copied
	tuner    checkpoint.Tuner // nil when nobody else writes to the store
	peers    *peers           // nil when it does not matter where workers are
	ops      atomic.Uint64
	creating guess // whether runs create their threads

	base     context.Context // of every live run; ended by Close
	cancel   context.CancelCauseFunc
	commits  context.Context // of store calls that must outlive a cancelled run
	cut      context.CancelFunc
	draining chan struct{}
	wake     chan struct{} // the sweeper has something to do
	work     sync.WaitGroup

	mu        sync.Mutex
	sessions  map[string]*session
	drifting  map[string]struct{} // threads whose lease may be ours without a session
	drained   bool
	live      int                    // sessions that have a place
	giving    int                    // of them, those that give it up for want of workers
	plenty    int                    // up to how many live runs those keep their places
	idle      map[*session]struct{}  // runs that could give their places up
	dismissed int64                  // of them, those that end here so that others have room
	called    map[string]heavyThread // threads that come from the heavy line, and have not begun
	paced     bool                   // the store bounds how long a change takes

	bytes     liveBytes
	loads     loads
	inLine    waitingLine  // threads that wait for a place
	heavyLine heavyLine    // threads that wait for room
	unserved  unservedRuns // threads that wait for workers
	poisoned  atomic.Int64 // what the observer knows of faults
	faults    faults       // threads that are put off because they could not be taken
	refusals  refusals     // of the store to the sweeper
}

// New makes an engine and starts looking for work that was left behind. ctx
// carries values for the runs; its end does not stop them, Close does.
func New(ctx context.Context, store checkpoint.Store, graphs Graphs, executor Executor, schemas Schemas, opts Options) *Engine {
	opts = opts.withDefaults()
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	commits, cut := context.WithCancel(context.WithoutCancel(ctx))
	clock := &clock{ours: opts.Now}
	line := &line{Store: store, attempts: opts.StoreAttempts, limit: opts.StoreTimeout, clock: clock}
	e := &Engine{
		id:    opts.Owner + "/" + uuid.NewString()[:8],
		store: line, line: line, executor: executor,
		graphs: graphs, schemas: schemas, opts: opts, observer: newObserver(opts.Observer, opts.Logger), log: opts.Logger,
		now: clock.now, born: time.Now(), hub: newHub(opts.RecentEvents), base: base, cancel: cancel, commits: commits, cut: cut,
		reads:    make(chan struct{}, maxReads),
		large:    make(chan struct{}, maxLargeReads),
		copying:  make(chan struct{}, 1),
		draining: make(chan struct{}), wake: make(chan struct{}, 1),
		sessions: make(map[string]*session), drifting: make(map[string]struct{}), called: make(map[string]heavyThread),
		idle: make(map[*session]struct{}), plenty: opts.MaxLive - max(1, opts.MaxLive/8),
		bytes: newLiveBytes(opts.MaxLiveBytes, opts.MaxLive),
		loads: loads{most: opts.MaxLiveBytes / 2},
	}
	_, e.paced = store.(checkpoint.Paced)
	if signals, ok := store.(checkpoint.Signals); ok {
		e.tuner = signals.Tune(e.hear)
	}
	e.poisoned.Store(-1) // the observer knows nothing yet
	e.meet(store)
	e.work.Go(contain.Func(func() { e.sweep(base) }, contain.Log(e.log, "the sweeper panicked and has ended")))
	return e
}

// session returns the live run of a thread in this process, or nil.
func (e *Engine) session(thread string) *session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[thread]
}

// adopt registers the hold on a thread, or returns errHeld or errDraining.
func (e *Engine) adopt(s *session) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.sessions[s.thread] != nil:
		return errHeld
	case e.drained:
		return errDraining
	}
	e.sessions[s.thread] = s
	e.work.Add(1)
	return nil
}

func (e *Engine) drop(s *session) {
	if e.unregister(s) {
		e.nudge() // others may wait for the place
	}
	if s.waits != nil && e.servesAny(s.waits) { // it has come meanwhile
		e.stir()
	}
}

func (e *Engine) unregister(s *session) (awaited bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions[s.thread] != s {
		return false
	}
	delete(e.sessions, s.thread)
	e.work.Done()
	if s.placed { // it waits for none, even if it was put in line late
		e.inLine.leave(s.thread)
		e.heavyLine.leave(s.thread)
	}
	s.unload()
	s.load.end()
	e.farewell(s)
	e.endGiving(s)
	return e.vacate(s) || e.heavyLine.len() > 0
}

// adrift notes a thread whose run was given up here. The lease may still be
// ours, and then nobody need wait for its end to go on.
func (e *Engine) adrift(thread string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drifting[thread] = struct{}{}
}

// salvage returns the threads that were given up and not attended to since.
func (e *Engine) salvage() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.drifting))
}

// attended notes that a thread that was given up is looked at now.
func (e *Engine) attended(thread string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.drifting, thread)
}

// Now is the store's time, as far as it was heard of.
func (e *Engine) Now() time.Time { return e.now() }

// uptime is how long the engine has existed, by a clock that nobody sets.
func (e *Engine) uptime() time.Duration { return time.Since(e.born) }

// Draining is closed when the engine stops taking up work.
func (e *Engine) Draining() <-chan struct{} { return e.draining }

func (e *Engine) isDraining() bool {
	select {
	case <-e.draining:
		return true
	default:
		return false
	}
}

// Drain stops taking up work, lets every live run finish its superstep, and
// hands the rest to whoever comes next. When ctx ends first, running nodes are
// cut off; they will run again.
func (e *Engine) Drain(ctx context.Context) {
	e.mu.Lock()
	if !e.drained {
		e.drained = true
		close(e.draining)
		if e.peers != nil {
			e.peers.post.Close()
		}
	}
	e.mu.Unlock()
	idle := make(chan struct{})
	go contain.Func(func() {
		e.work.Wait()
		close(idle)
	}, contain.Log(e.log, "a drain panicked"))()
	select {
	case <-idle:
	case <-ctx.Done():
		e.cancel(errDrain)
		// What is finished is still handed over; a store that hangs is not waited for.
		last := time.AfterFunc(handOver, contain.Func(e.cut, contain.Log(e.log, "a drain panicked")))
		defer last.Stop()
		e.abandon(idle)
	}
	e.cancel(errDrain)
	e.cut()
	if e.tuner != nil {
		e.tuner.Close()
	}
}

// abandon waits for the cut-off runs, save those whose node does not listen:
// their lease runs out and another process goes on.
func (e *Engine) abandon(idle <-chan struct{}) {
	patience := time.NewTimer(2 * handOver)
	defer patience.Stop()
	select {
	case <-idle:
	case <-patience.C:
		e.log.Warn("nodes that ignore their context are left behind")
	}
}

// handOver is how long the last commits of a drain may take.
const handOver = 2 * time.Second

// Close drains without mercy.
func (e *Engine) Close() {
	ctx, cancel := context.WithCancel(e.base)
	cancel()
	e.Drain(ctx)
}
