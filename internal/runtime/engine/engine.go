// Package engine wires the parts of the runtime, and passes each call to the part that
// serves it.
//
// A parked thread costs the process nothing: no goroutine, no timer, no memory.
package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/admission"
	"github.com/graphd-dev/graphd/internal/runtime/assistants"
	"github.com/graphd-dev/graphd/internal/runtime/cancellation"
	"github.com/graphd-dev/graphd/internal/runtime/capacity"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/crons"
	"github.com/graphd-dev/graphd/internal/runtime/due"
	"github.com/graphd-dev/graphd/internal/runtime/edit"
	"github.com/graphd-dev/graphd/internal/runtime/feed"
	"github.com/graphd-dev/graphd/internal/runtime/holdings"
	"github.com/graphd-dev/graphd/internal/runtime/items"
	"github.com/graphd-dev/graphd/internal/runtime/ownership"
	"github.com/graphd-dev/graphd/internal/runtime/placement"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/query"
	"github.com/graphd-dev/graphd/internal/runtime/questions"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
	"github.com/graphd-dev/graphd/internal/runtime/snapshot"
	"github.com/graphd-dev/graphd/internal/runtime/statistics"
	"github.com/graphd-dev/graphd/internal/runtime/superstep"
	"github.com/graphd-dev/graphd/internal/runtime/threads"
	"github.com/graphd-dev/graphd/internal/runtime/views"
	"github.com/graphd-dev/graphd/internal/runtime/webhooks"
)

// Options tune an engine. Zero fields mean the defaults that are named.
type Options struct {
	Owner            string        // name of this replica; random when empty
	LeaseTTL         time.Duration // how long a silent replica keeps a thread; 15 s
	StepLimit        int           // supersteps of a run by default; 10 000
	ParallelTasks    int           // tasks of one superstep at the same time; 64
	StepsPerCommit   int           // supersteps without effects that share a commit, 1 = none; 64
	CommitTime       time.Duration // after which no further superstep joins a commit; 2 ms
	MaxLiveRuns      int           // live runs in this process; 10 000
	MaxLiveBytes     int64         // bytes that they hold in states and writes; 256 MiB
	QueueLimit       int           // runs that wait in a thread; 64
	AssistantLimit   int           // assistants of a tenant; 10 000
	AssistantBytes   int           // bytes of a version of an assistant; 256 KiB
	ItemLimit        int           // items of a tenant; 100 000
	SearchedItems    int           // items that one search looks at; 10 000
	RunWebhookLimit  int           // webhooks of runs of a tenant that were not called; 10 000
	CronLimit        int           // crons of a tenant; 1000
	CronBytes        int           // bytes of a cron; 256 KiB
	RecentViewBytes  int           // bytes of threads at rest that are kept for calls that go on with them; 32 MiB, negative = 0
	RecentEventBytes int           // bytes of events kept for followers that have not read them; 64 MiB
	MaxCopyBytes     int           // bytes of a thread that is copied; 64 MiB
	MaxTaskMemoBytes int64         // bytes of memos that a task may record, see MaxTaskMemoBytes; 4 MiB
	ScanInterval     time.Duration // how often abandoned work is looked for; 1 s
	StoreAttempts    int           // tries of a client's call that is not answered; 3
	StoreTimeout     time.Duration // how long a client's call waits for the store; 5 s
	// PollInterval is how often a follower looks for writes of other replicas, 0 = never:
	// no other process writes to the store.
	PollInterval time.Duration
	// Workers are those that are attached to this server; nil when no node runs
	// in another process, or no other server shares the store.
	Workers    runtime.Workers
	EventLimit uint64 // events kept per thread, 0 = all
	// Limits bound values, states, and the writes of a superstep: 4 MiB, 8 MiB, 8 MiB and
	// 4096 Sends.
	Limits pregel.Limits
	// ParseCronRun makes a request of what a cron starts; nil = crons do not fire here.
	ParseCronRun func(c *runtime.Cron) (runtime.StartRequest, error)
	// Tenants limit what each tenant holds; nil = no tenant has a limit.
	Tenants runtime.TenantLimits
	// Callers limit what each caller holds in its tenant; nil = no caller has a limit.
	Callers runtime.CallerLimits
	// Conditions evaluates the conditions of policies; nil = a question with one is refused.
	Conditions runtime.Conditions
	// KnowsCallers says that the server knows who calls. Otherwise a question that is for
	// certain people is refused.
	KnowsCallers bool
	// KeepsSecrets says that the store encrypts its records, or keeps them nowhere but in memory.
	// Otherwise a question with secret parts fails its node.
	KeepsSecrets bool
	// Undo is how long an answer can be taken back when its question does not say; 0 = not at all.
	Undo time.Duration
	// StatisticsLimit is how many graphs, pairs of a graph and a group, and nodes of a tenant
	// have statistics of their own; 0 = statistics.DefaultLimit.
	StatisticsLimit int
	// KeepCheckpoints is how many checkpoints a thread keeps when nothing is going on
	// in it, with the events since; some more as long as they are few, and those
	// that are needed. 0 = all.
	KeepCheckpoints uint64
	PruneDelay      time.Duration    // how long a thread is left alone before that; 1 min
	Logger          *zap.Logger      // silent when nil
	Observer        runtime.Observer // none when nil
	Tracer          Tracer           // nil = nothing is traced
	Now             func() time.Time // the clock of this process; the store's counts
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
	or(&o.LeaseTTL, 15*time.Second)
	or(&o.ScanInterval, time.Second)
	or(&o.PruneDelay, time.Minute)
	or(&o.StoreTimeout, 5*time.Second)
	or(&o.CommitTime, 2*time.Millisecond)
	orInt(&o.StepLimit, 10_000)
	orInt(&o.ParallelTasks, 64)
	orInt(&o.StepsPerCommit, 64)
	orInt(&o.MaxLiveRuns, 10_000)
	o.MaxLiveBytes = cmp.Or(o.MaxLiveBytes, 256<<20)
	orInt(&o.QueueLimit, 64)
	orInt(&o.AssistantLimit, 10_000)
	orInt(&o.AssistantBytes, 256<<10)
	orInt(&o.ItemLimit, 100_000)
	orInt(&o.SearchedItems, 10_000)
	orInt(&o.RunWebhookLimit, 10_000)
	orInt(&o.CronLimit, 1000)
	orInt(&o.CronBytes, 256<<10)
	orInt(&o.RecentEventBytes, 64<<20)
	orInt(&o.MaxCopyBytes, 64<<20)
	o.RecentViewBytes = cmp.Or(o.RecentViewBytes, 32<<20)
	o.MaxTaskMemoBytes = cmp.Or(o.MaxTaskMemoBytes, 4<<20)
	orInt(&o.StoreAttempts, 3)
	o.Limits.MaxValueBytes = cmp.Or(o.Limits.MaxValueBytes, 4<<20)
	o.Limits.MaxStateBytes = cmp.Or(o.Limits.MaxStateBytes, 8<<20)
	o.Limits.MaxWriteBytes = cmp.Or(o.Limits.MaxWriteBytes, 8<<20)
	orInt(&o.Limits.MaxSends, 4096)
	if o.Owner == "" {
		o.Owner = uuid.NewString()[:13]
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Observer == nil {
		o.Observer = runtime.NopObserver{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Tracer traces what the parts of the engine do.
type Tracer interface {
	superstep.Tracer
	ownership.Tracer
	commit.Tracer
}

// Engine runs graphs over the threads of one store. Several engines may share
// a store.
type Engine struct {
	id           string           // owner name in leases: replica and incarnation
	store        checkpoint.Store // a StoreClient
	reader       *query.Reader
	snapshots    *snapshot.Reader
	threads      *threads.Manager
	questions    *questions.Editor
	assistants   *assistants.Keeper
	items        *items.Keeper
	webhooks     *webhooks.Keeper
	crons        *crons.Keeper
	committer    *commit.Committer
	loopEnv      *superstep.Env // parts of the server that all loops use
	schemas      runtime.Schemas
	opts         Options
	observer     runtime.Observer
	log          *zap.Logger
	now          func() time.Time // the store's time
	startTime    time.Time
	feed         *feed.Feed
	subscription checkpoint.Subscription // nil when no other process writes to the store
	peers        *placement.Peers        // nil when it does not matter where workers are

	capacity   *capacity.Limiter   // of live runs
	holdings   *holdings.Keeper    // of what tenants have in the store
	views      *views.Cache        // of threads at rest
	statistics *statistics.Counter // of what becomes of questions
	readBudget *runtime.ReadBudget
	unserved   *placement.UnservedRuns // runs that wait for workers
	scheduler  *scheduler.Scheduler
	held       *ownership.Table   // the threads that are held here
	changer    *ownership.Changer // of threads that may be held here
	hooks      *commitHooks
	owner      *ownership.Owner // takes and drives threads
	canceller  *cancellation.Canceller
	editor     *edit.Editor
	admitter   *admission.Admitter
}

// New makes an engine and starts looking for work that was left behind. ctx
// carries values for the runs; its end does not stop them, Close does.
func New(ctx context.Context, store checkpoint.Store, graphs runtime.Graphs, executor runtime.Executor, schemas runtime.Schemas, opts Options) *Engine {
	opts = opts.withDefaults()
	client := commit.NewStoreClient(store, opts.StoreAttempts, opts.StoreTimeout, opts.Now)
	e := &Engine{
		id:    opts.Owner + "/" + uuid.NewString()[:8],
		store: client, schemas: schemas, opts: opts, observer: runtime.ContainObserver(opts.Observer, opts.Logger), log: opts.Logger,
		now: client.CurrentTime, startTime: time.Now(), held: ownership.NewTable(), readBudget: runtime.NewReadBudget(opts.MaxLiveBytes / 2),
	}
	if opts.Tracer != nil {
		client.TraceCalls(opts.Tracer)
	}
	e.capacity = newCapacity(e)
	e.unserved = placement.NewUnservedRuns(e.wakeScheduler)
	if opts.Workers != nil {
		e.peers = placement.New(opts.Workers, e.unserved)
	}
	_, isShared := store.(checkpoint.Notifier)
	e.scheduler = e.newScheduler(isShared)
	e.feed = e.newFeed()
	e.reader = query.New(query.Options{
		Store: client, Graphs: graphs, Limits: opts.Limits, Tenants: opts.Tenants, Budget: e.readBudget,
		SmallStateBytes: int(e.capacity.ShareBytes()), Follow: e.feed.Follow,
	})
	e.holdings = e.newHoldings(e.opts.Tenants)
	e.views = views.NewCache(max(0, opts.RecentViewBytes))
	e.statistics = statistics.New(statistics.Options{Limit: opts.StatisticsLimit, Now: e.now})
	e.hooks = &commitHooks{feed: e.feed, held: e.held, scheduler: e.scheduler, unserved: e.unserved, capacity: e.capacity, holdings: e.holdings, statistics: e.statistics, views: e.views}
	e.committer = newCommitter(e, store)
	e.snapshots = snapshot.New(snapshot.Options{Store: client, Reader: e.reader, Committer: e.committer})
	e.changer = ownership.NewChanger(e.held, client, e.committer, e.feed, e.hooks.noteRemoved)
	e.loopEnv = e.newLoopEnv(executor)
	e.canceller = cancellation.New(cancellation.Options{
		Store: client, Reader: e.reader, Committer: e.committer, ReadBudget: e.readBudget, Change: e.changer.ChangeFrom, WakeScheduler: e.wakeScheduler,
	})
	versions := placement.NewVersionChooser(graphs, e.peers, e.log)
	e.questions = questions.NewEditor(questions.Options{Reader: e.reader, Change: e.changer.ChangeThread, WakeScheduler: e.wakeScheduler})
	e.assistants = assistants.New(assistants.Options{
		Store: client, Committer: e.committer, Graphs: e.reader, Requests: e.reader, Limit: opts.AssistantLimit, MaxBytes: opts.AssistantBytes,
	})
	e.items = items.New(items.Options{
		Store: client, Committer: e.committer, Counts: e.newHoldings(items.TenantLimit(opts.ItemLimit)), Limit: opts.ItemLimit, Searched: opts.SearchedItems,
		ReserveMemory: e.reader.ReserveValueMemory,
	})
	e.webhooks = webhooks.New(webhooks.Options{
		Store: client, Committer: e.committer, Limit: opts.RunWebhookLimit, WakeScheduler: e.wakeScheduler, Logger: e.log,
		RunUntilDrain: func(f func(ctx context.Context)) { e.owner.RunUntilDrain(f, "calling a webhook panicked") },
	})
	e.hooks.webhooks = e.webhooks
	e.crons = crons.New(crons.Options{
		Store: client, Committer: e.committer, Graphs: e.reader, Requests: e.reader, Counts: e.newHoldings(items.TenantLimit(opts.CronLimit)),
		Runs: e, ParseRun: opts.ParseCronRun, Limit: opts.CronLimit, MaxBytes: opts.CronBytes, Observer: e.observer, Logger: e.log,
	})
	e.threads = threads.New(threads.Options{
		Store: client, Reader: e.reader, Committer: e.committer, Versions: versions, Budget: e.readBudget, Now: e.now, Logger: e.log,
		MaxCopyBytes: opts.MaxCopyBytes, KeepCheckpoints: opts.KeepCheckpoints, PruneDelay: opts.PruneDelay,
		Holdings: e.holdings, Change: e.changer.ChangeThread, Remove: e.changer.RemoveHeldThread, WakeScheduler: e.wakeScheduler,
	})
	e.owner = e.newOwner(ctx)
	e.hooks.owner = e.owner
	e.scheduler.SetProcessor(due.New(due.Options{
		Server: e.id, LeaseTTL: opts.LeaseTTL, ScanInterval: opts.ScanInterval, Store: client, Reader: e.reader, Committer: e.committer,
		Env: e.loopEnv, Owner: e.owner, Changer: e.changer, Canceller: e.canceller, Pruner: e.threads, Capacity: e.capacity, Webhooks: e.webhooks, Crons: e.crons,
		Unserved: e.unserved, Peers: e.peers, IsLive: e.held.IsLive, InvalidateTopic: e.feed.InvalidateTopic,
		WakeScheduler: e.wakeScheduler, Uptime: e.uptime, Logger: e.log,
	}))
	e.editor = edit.New(edit.Options{
		Reader: e.reader, Snapshots: e.snapshots, Committer: e.committer, Budget: e.readBudget, Env: e.loopEnv,
		NewThread: e.owner.NewDetachedThread, ChangeFree: e.changer.ChangeFree,
	})
	e.admitter = admission.New(admission.Options{
		Reader: e.reader, Committer: e.committer, Env: e.loopEnv, Schemas: schemas, Conditions: opts.Conditions, Observer: e.observer, Views: client, Recent: e.views, Owner: e.owner,
		Changer: e.changer, Heads: e.threads, Versions: versions, Canceller: e.canceller, Capacity: e.capacity, Holdings: e.holdings, Commands: e.editor,
		QueueLimit: opts.QueueLimit, Now: e.now, IsLive: e.held.IsLive, WakeScheduler: e.wakeScheduler,
	})
	if signals, ok := store.(checkpoint.Notifier); ok {
		e.subscription = signals.Subscribe(e.owner.HandleSignal)
		e.feed.SetSubscription(e.subscription)
		e.owner.SetSubscription(e.subscription)
	}
	e.joinMembership(store)
	e.owner.RunBackground(e.scheduler.Run, "the sweeper panicked and has ended")
	return e
}

// newCapacity makes the limiter of the live runs of the engine.
func newCapacity(e *Engine) *capacity.Limiter {
	return capacity.New(capacity.Options{
		MaxRuns: e.opts.MaxLiveRuns, MaxBytes: e.opts.MaxLiveBytes, Tenants: e.opts.Tenants, Callers: e.opts.Callers,
		Uptime: e.uptime, Wake: e.wakeScheduler,
	})
}

// newHoldings makes a keeper of what tenants hold. It runs work when the engine has its
// owner.
func (e *Engine) newHoldings(limits runtime.TenantLimits) *holdings.Keeper {
	return holdings.New(holdings.Options{
		Limits: limits, Store: e.store, Uptime: e.uptime, RunBackground: func(f func(ctx context.Context)) {
			e.owner.RunUntilDrain(f, "counting the queued runs of a tenant panicked")
		},
	})
}

// newOwner makes the owner of the threads of the engine.
func (e *Engine) newOwner(ctx context.Context) *ownership.Owner {
	return ownership.New(ctx, ownership.Options{
		ID: e.id, LeaseTTL: e.opts.LeaseTTL, PruneDelay: e.opts.PruneDelay, ScanInterval: e.opts.ScanInterval, MaxHandOffs: scheduler.MaxParallelDue,
		Threads: e.held, Store: e.store, Reader: e.reader, Committer: e.committer, Feed: e.feed, Capacity: e.capacity, ReadBudget: e.readBudget,
		Unserved: e.unserved, Peers: e.peers, Scheduler: e.scheduler, Pruner: e.threads, Canceller: e.canceller,
		Uptime: e.uptime, Now: e.now, Observer: e.observer, Tracer: e.opts.Tracer, Logger: e.log,
	})
}

// joinMembership registers this server in the membership of the store, if the store
// has one.
func (e *Engine) joinMembership(store checkpoint.Store) {
	if e.peers == nil {
		return
	}
	if membership, ok := store.(checkpoint.Membership); ok {
		e.peers.Register(membership, e.id)
	}
	e.opts.Workers.SetPeers(e.peers)
}

// newScheduler makes the scheduler of the engine. isShared says that other servers look
// at the same store.
func (e *Engine) newScheduler(isShared bool) *scheduler.Scheduler {
	hooks := &schedulerHooks{capacity: e.capacity, observer: e.observer, peers: e.peers, uptime: e.uptime}
	return scheduler.New(scheduler.Options{
		Store: e.store, Granter: e.capacity, Queue: e.capacity, Abandoned: e.held, IsLive: e.held.IsLive,
		ReportLive: hooks.reportLiveBytes, QueueServed: hooks.queueServed, IsShared: isShared, ScanInterval: e.opts.ScanInterval,
		Uptime: e.uptime, Now: e.now, Observer: e.observer, Logger: e.log,
	})
}

// wakeScheduler makes the scheduler look for due threads now. It does not block.
func (e *Engine) wakeScheduler() { e.scheduler.Wake() }

// newFeed makes the feed of the engine.
func (e *Engine) newFeed() *feed.Feed {
	return feed.New(feed.Options{
		Store: e.store, PollInterval: e.opts.PollInterval, RecentBytes: e.opts.RecentEventBytes, Now: e.now, Logger: e.log,
		IsLive: e.held.IsLive,
		ListInterrupts: func(ctx context.Context, memory *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error) {
			return e.reader.ListInterrupts(ctx, memory, runtime.WaitForever, q)
		},
		ReserveMemory: func(ctx context.Context, memory *runtime.CallMemory, bytes int) error {
			return e.reader.ReserveValueMemory(ctx, memory, bytes)
		},
	})
}

// Follow begins to read the events of a thread. The follower must be closed. It does
// not check that the thread exists.
func (e *Engine) Follow(req runtime.FollowRequest) *feed.Follower { return e.feed.Follow(req) }

// FollowInterrupts begins to read the changes of interrupts after a cursor, which is
// the Change of an interrupt; the query's filters apply. The follower must be closed.
func (e *Engine) FollowInterrupts(memory *runtime.CallMemory, q checkpoint.InterruptQuery, after uint64) *feed.InterruptFollower {
	return e.feed.FollowInterrupts(memory, q, after)
}

// newLoopEnv collects the parts of the server that the loops of all runs use.
func (e *Engine) newLoopEnv(executor runtime.Executor) *superstep.Env {
	return &superstep.Env{
		Tracer: e.opts.Tracer,
		Store:  e.store, Reader: e.reader, Executor: executor, Schemas: e.schemas, Observer: e.observer, Log: e.log, Now: e.now,
		Conditions: e.opts.Conditions, KnowsCallers: e.opts.KnowsCallers, KeepsSecrets: e.opts.KeepsSecrets, Undo: e.opts.Undo,
		Limits: e.opts.Limits, StepLimit: e.opts.StepLimit, ParallelTasks: e.opts.ParallelTasks, StepsPerCommit: e.opts.StepsPerCommit,
		CommitTime: e.opts.CommitTime, MaxTaskMemoBytes: e.opts.MaxTaskMemoBytes, TracksTasks: e.opts.Workers != nil,
		IsDraining: e.held.IsDraining, IsMemoryExceeded: e.capacity.IsExceeded,
	}
}

// newCommitter makes the committer of the engine.
func newCommitter(e *Engine, store checkpoint.Store) *commit.Committer {
	_, isTimeBounded := store.(checkpoint.TimeBounded)
	return commit.NewCommitter(commit.Options{
		Store: e.store, Owner: e.id, Attempts: e.opts.StoreAttempts, Timeout: e.opts.StoreTimeout, IsTimeBounded: isTimeBounded,
		EventLimit: e.opts.EventLimit, Now: e.now, Observer: e.observer, Tracer: e.opts.Tracer, PruneTime: func(h *checkpoint.Head) time.Time { return e.threads.PruneTime(h) },
		Unknown: e.hooks.noteUnknownOutcome, Committed: e.hooks.noteCommitted, Published: e.feed.PublishEvents,
	})
}

// RecheckTenants takes up new limits of tenants and callers, and begins runs that waited for
// one.
func (e *Engine) RecheckTenants() { e.capacity.RecheckTenants() }

// ListTenantHoldings lists what tenants hold of what they have a limit of, as far as this
// server has counted it.
func (e *Engine) ListTenantHoldings() []runtime.TenantHolding {
	return append(e.capacity.ListTenants(), e.holdings.ListTenants()...)
}

// Items returns what keeps items.
func (e *Engine) Items() *items.Keeper { return e.items }

// Assistants returns what keeps assistants.
func (e *Engine) Assistants() *assistants.Keeper { return e.assistants }

// Webhooks returns what tells addresses of runs that stop.
func (e *Engine) Webhooks() *webhooks.Keeper { return e.webhooks }

// Crons returns what keeps crons.
func (e *Engine) Crons() *crons.Keeper { return e.crons }

// Now returns the store's time, as far as it is known.
func (e *Engine) Now() time.Time { return e.now() }

// uptime returns the age of the engine by a monotonic clock.
func (e *Engine) uptime() time.Duration { return time.Since(e.startTime) }

// Draining returns a channel that is closed when the engine stops taking up work.
func (e *Engine) Draining() <-chan struct{} { return e.held.Draining() }

// Drain stops taking up work, lets every live run finish its superstep, and hands
// the rest to the next server. When ctx ends first, running nodes are cut off; they
// will run again.
func (e *Engine) Drain(ctx context.Context) {
	e.owner.Drain(ctx)
	e.closeSubscription()
}

// Close drains without mercy.
func (e *Engine) Close() {
	e.owner.Close()
	e.closeSubscription()
}

func (e *Engine) closeSubscription() {
	if e.subscription != nil {
		e.subscription.Close()
	}
}

// MemoryStoreCheckpoints is how many checkpoints a server keeps of a thread at rest
// by default when its store is memory: the last turns of a conversation.
const MemoryStoreCheckpoints = 64
