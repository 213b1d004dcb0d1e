package holdings

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/backoff"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime"
)

// queues counts the queued runs of tenants. No store has an index of them. So when a tenant
// with a limit queues its first run, the server begins to count the queues of the threads
// that it changes, and counts in the background those that were there before. Before it
// refuses a run, it looks at some again: other servers may have shortened them.
type queues struct {
	opts *Options

	mu       sync.Mutex
	byTenant map[string]*tenantQueues // of those that have queued a run here, see addTenant
}

// tenantQueues are the queues of a tenant. The lock of queues guards them.
type tenantQueues struct {
	runs     map[string]int // queued runs of each thread that has some
	count    int            // their sum
	pending  int            // runs that are about to be queued
	isListed bool           // the threads of the store are counted, or are about to be
	seenAt   time.Duration  // uptime when some were looked at again
	usedAt   time.Duration  // uptime when a run was about to be queued
}

// maxTenants is the number of tenants whose queues are counted. Those with runs that are
// about to be queued are counted beyond it.
const maxTenants = 4096

// Bounds of reads.
const (
	maxRecheckedQueues = 64
	listPage           = 1000
)

// setQueue sets how many queued runs a thread has, where its tenant is counted.
func (q *queues) setQueue(owner, thread string, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.byTenant[owner]; t != nil {
		t.setQueue(thread, n)
	}
}

func (t *tenantQueues) setQueue(thread string, n int) {
	t.count += n - t.runs[thread]
	if n == 0 {
		delete(t.runs, thread)
	} else {
		t.runs[thread] = n
	}
}

// addRun takes one of the queued runs that a tenant may have; done is called when the
// queue of its thread is set.
func (q *queues) addRun(ctx context.Context, owner string, most int64) (done func(), err error) {
	if !q.tryAdd(owner, most) {
		if err := q.recheckQueues(ctx, owner); err != nil {
			return nil, err
		}
		if !q.tryAdd(owner, most) {
			return nil, runtime.TenantLimitError(owner, runtime.HoldingQueuedRuns, most)
		}
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.byTenant[owner].pending-- // a tenant with pending runs is not forgotten
	}, nil
}

func (q *queues) tryAdd(owner string, most int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.byTenant[owner]
	if t == nil {
		t = q.addTenant(owner)
	}
	t.usedAt = q.opts.Uptime()
	if !t.isListed {
		t.isListed = true
		q.opts.RunBackground(func(ctx context.Context) { q.listQueues(ctx, owner, t) })
	}
	if int64(t.count+t.pending) >= most {
		return false
	}
	t.pending++
	return true
}

// recheckQueues looks at some queues of a tenant again that other servers may have
// shortened.
func (q *queues) recheckQueues(ctx context.Context, owner string) error {
	for _, thread := range q.chooseQueues(owner) {
		head, err := q.opts.Store.Head(ctx, thread)
		if err != nil && !errors.Is(err, checkpoint.ErrThreadNotFound) {
			return runtime.TranslateStoreError(err)
		}
		q.setQueue(owner, thread, head.CountWaiting()) // none of a thread that is gone
	}
	return nil
}

// chooseQueues chooses some threads of a tenant, in no order, and none where it has done so
// just before.
func (q *queues) chooseQueues(owner string) (threads []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, now := q.byTenant[owner], q.opts.Uptime()
	if t == nil || now-t.seenAt < refusalAge {
		return nil
	}
	t.seenAt = now
	for thread := range t.runs {
		if threads = append(threads, thread); len(threads) == maxRecheckedQueues {
			break
		}
	}
	return threads
}

// listCounts lists the queued runs of tenants.
func (q *queues) listCounts() (list []runtime.TenantHolding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for owner, t := range q.byTenant {
		list = append(list, runtime.TenantHolding{Tenant: owner, Of: runtime.HoldingQueuedRuns, Held: int64(t.count)})
	}
	return list
}

// addTenant begins to count a tenant. When there are many, it forgets a quarter of them: the
// next run that such a tenant queues has its queues counted anew. The lock is held.
func (q *queues) addTenant(owner string) *tenantQueues {
	if len(q.byTenant) >= maxTenants {
		for _, idle := range q.listIdle(len(q.byTenant) - maxTenants*3/4) {
			delete(q.byTenant, idle)
		}
	}
	t := &tenantQueues{runs: make(map[string]int)}
	q.byTenant[owner] = t
	return t
}

// listIdle lists at most so many tenants without pending runs: those without queued runs
// first, and of these those that have not queued one for the longest time. The lock is held.
func (q *queues) listIdle(most int) []string {
	var idle []string
	for owner, t := range q.byTenant {
		if t.pending == 0 {
			idle = append(idle, owner)
		}
	}
	slices.SortFunc(idle, func(a, b string) int {
		one, other := q.byTenant[a], q.byTenant[b]
		return cmp.Or(cmp.Compare(min(one.count, 1), min(other.count, 1)), cmp.Compare(one.usedAt, other.usedAt))
	})
	return idle[:min(len(idle), most)]
}

// listQueues counts the queues of a tenant that are in the store. It rests after each page,
// since a tenant may have many threads. A store that does not answer ends it, and the next
// queued run begins it again. It also ends when the tenant is forgotten.
func (q *queues) listQueues(ctx context.Context, owner string, t *tenantQueues) {
	query := checkpoint.ThreadQuery{Tenant: owner, Limit: listPage}
	for {
		began := q.opts.Uptime()
		heads, err := q.opts.Store.Threads(ctx, query)
		if err == nil {
			err = backoff.Sleep(ctx, restFactor*(q.opts.Uptime()-began))
		}
		if err != nil {
			q.mu.Lock()
			t.isListed = false
			q.mu.Unlock()
			return
		}
		if len(heads) == 0 || !q.addListed(owner, t, heads) {
			return
		}
		query.Before = query.PositionOf(&heads[len(heads)-1])
	}
}

// addListed counts the queues of threads that no change has set meanwhile. It reports whether
// the tenant is still counted.
func (q *queues) addListed(owner string, t *tenantQueues, heads []checkpoint.Head) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range heads {
		if _, known := t.runs[heads[i].Thread]; !known && heads[i].CountWaiting() > 0 {
			t.setQueue(heads[i].Thread, heads[i].CountWaiting())
		}
	}
	return q.byTenant[owner] == t
}
