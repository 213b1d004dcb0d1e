// Package holdings keeps tenants within the limits of what they hold in the store: threads,
// open questions and queued runs. It costs nothing for a tenant without such a limit.
//
// The store counts threads and open questions for all servers. A server keeps a count for
// a second and adds what it does itself, so that few calls wait for the store. Queued runs
// are counted by each server, see queues.
package holdings

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/tenant"
)

// Store counts what tenants hold, and reads the heads of threads.
type Store interface {
	checkpoint.Counter
	Head(ctx context.Context, thread string) (checkpoint.Head, error)
	Threads(ctx context.Context, q checkpoint.ThreadQuery) ([]checkpoint.Head, error)
}

// Options are the collaborators of a Keeper.
type Options struct {
	Limits runtime.TenantLimits // nil = no tenant has a limit
	Store  Store
	Uptime func() time.Duration // by a monotonic clock
	// RunBackground runs a function whose context ends when the server stops.
	RunBackground func(f func(ctx context.Context))
}

// Keeper counts what tenants hold, and refuses what exceeds their limits.
type Keeper struct {
	opts   Options
	queues queues

	mu        sync.Mutex
	tallies   map[tallyKey]*tally
	droppedAt time.Duration // uptime when counts were forgotten
}

type tallyKey struct {
	tenant string
	of     runtime.Holding
}

// maxTallies is the number of counts from which those that are out of date are forgotten,
// once in their age.
const maxTallies = 4096

// New makes a keeper.
func New(o Options) *Keeper {
	k := &Keeper{opts: o, tallies: make(map[tallyKey]*tally)}
	k.queues = queues{opts: &k.opts, byTenant: make(map[string]*tenantQueues)}
	return k
}

// AddThread takes one of the threads that a tenant may have. done is called once, with
// whether the thread was made. The error is an *Error: QUOTA_EXCEEDED, and those of the
// store.
func (k *Keeper) AddThread(ctx context.Context, thread string) (done func(isMade bool), err error) {
	owner, most := k.findLimit(thread, runtime.HoldingThreads)
	if most < 0 {
		return doNothing, nil
	}
	t := k.findTally(owner, runtime.HoldingThreads)
	if err := k.admitMore(ctx, t, owner, most, 1); err != nil {
		return nil, err
	}
	return t.settlePending, nil
}

func doNothing(bool) {}

// CheckQuestions refuses what may ask further questions, when the tenant of a thread has as
// many open questions as it may. Errors are those of AddThread.
func (k *Keeper) CheckQuestions(ctx context.Context, thread string) error {
	owner, most := k.findLimit(thread, runtime.HoldingOpenQuestions)
	if most < 0 {
		return nil
	}
	return k.admitMore(ctx, k.findTally(owner, runtime.HoldingOpenQuestions), owner, most, 0)
}

// AddQueuedRun takes one of the queued runs that a tenant may have. done is called once,
// after NoteCommitted. Errors are those of AddThread.
func (k *Keeper) AddQueuedRun(ctx context.Context, thread string) (done func(), err error) {
	owner, most := k.findLimit(thread, runtime.HoldingQueuedRuns)
	if most < 0 {
		return func() {}, nil
	}
	return k.queues.addRun(ctx, owner, most)
}

// NoteCommitted notes what a change has done to a thread that has so many queued runs now.
func (k *Keeper) NoteCommitted(thread string, queued int, events []checkpoint.Event) {
	if k.opts.Limits == nil {
		return
	}
	owner, _ := tenant.Split(thread)
	k.queues.setQueue(owner, thread, queued)
	change := 0
	for i := range events {
		switch events[i].Kind {
		case checkpoint.EventInterrupt:
			change += len(events[i].Interrupts)
		case checkpoint.EventResolved:
			change -= len(events[i].Interrupts)
		default: // not about questions
		}
	}
	if change == 0 {
		return
	}
	if t := k.lookUpTally(owner, runtime.HoldingOpenQuestions); t != nil {
		t.adjustCount(change)
	}
}

// NoteRemoved notes that a thread was removed.
func (k *Keeper) NoteRemoved(thread string) {
	if k.opts.Limits == nil {
		return
	}
	owner, _ := tenant.Split(thread)
	k.queues.setQueue(owner, thread, 0)
	for _, of := range []runtime.Holding{runtime.HoldingThreads, runtime.HoldingOpenQuestions} {
		if t := k.lookUpTally(owner, of); t != nil {
			t.markOutdated() // the store may have counted without the thread already
		}
	}
}

// ListTenants lists the tenants with a limit whose threads, open questions or queued runs
// were counted. A count may be out of date where the tenant has not called since.
func (k *Keeper) ListTenants() []runtime.TenantHolding {
	list := k.queues.listCounts()
	k.mu.Lock()
	for key, t := range k.tallies {
		if n, isRead := t.lookUpCount(); isRead {
			list = append(list, runtime.TenantHolding{Tenant: key.tenant, Of: key.of, Held: int64(n)})
		}
	}
	k.mu.Unlock()
	limited := list[:0]
	for _, h := range list {
		if h.Most = k.opts.Limits.FindTenantLimit(h.Tenant, h.Of); h.Most >= 0 {
			limited = append(limited, h)
		}
	}
	return limited
}

// findLimit returns the limit of a thread's tenant, negative = none.
func (k *Keeper) findLimit(thread string, of runtime.Holding) (owner string, most int64) {
	if k.opts.Limits == nil {
		return "", runtime.NoTenantLimit
	}
	owner, _ = tenant.Split(thread)
	return owner, k.opts.Limits.FindTenantLimit(owner, of)
}

// admitMore counts more of what a tenant holds, or refuses it: then the tenant has most
// already. With more of 0 it asks whether there is room for one.
func (k *Keeper) admitMore(ctx context.Context, t *tally, owner string, most int64, more int) error {
	for {
		switch t.tryAdd(k.opts.Uptime(), most, more) {
		case added:
			return nil
		case full:
			return runtime.TenantLimitError(owner, t.of, most)
		case unknown:
		}
		if err := k.readTally(ctx, t, owner, most); err != nil {
			return err
		}
	}
}

// readTally reads a count from the store, unless another call has just done so.
func (k *Keeper) readTally(ctx context.Context, t *tally, owner string, most int64) error {
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	atMost := int(min(most, math.MaxInt32))
	before, needed := t.beginRead(k.opts.Uptime(), most)
	if !needed {
		return nil
	}
	count := k.opts.Store.CountThreads
	if t.of == runtime.HoldingOpenQuestions {
		count = k.opts.Store.CountOpenInterrupts
	}
	n, err := count(ctx, owner, atMost)
	if err != nil {
		return runtime.TranslateStoreError(err)
	}
	t.endRead(k.opts.Uptime(), before, n, n >= atMost)
	return nil
}

// findTally returns a count of a tenant, which may be new.
func (k *Keeper) findTally(owner string, of runtime.Holding) *tally {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := tallyKey{owner, of}
	t := k.tallies[key]
	if t == nil {
		if now := k.opts.Uptime(); len(k.tallies) >= maxTallies && now-k.droppedAt >= tallyAge {
			k.droppedAt = now
			k.dropTallies(now)
		}
		t = &tally{of: of, reading: make(chan struct{}, 1)}
		k.tallies[key] = t
	}
	return t
}

// dropTallies forgets counts that have to be read again. The lock is held.
func (k *Keeper) dropTallies(now time.Duration) {
	for key, t := range k.tallies {
		if t.isUseless(now) {
			delete(k.tallies, key)
		}
	}
}

// lookUpTally returns a count of a tenant, nil = there is none.
func (k *Keeper) lookUpTally(owner string, of runtime.Holding) *tally {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tallies[tallyKey{owner, of}]
}
