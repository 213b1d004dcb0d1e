package capacity

import (
	"container/heap"
	"math"
	"slices"
)

// slotQueue is the queue of threads that need a slot. It saves the scheduler from
// reading each of them again and again. Limiter.mu guards it.
//
// Each tenant has a queue of its own, so that the threads of a tenant without a free slot
// of its own are passed over at once, whatever their number.
type slotQueue struct {
	queued     map[string]uint64       // number of each thread
	tenants    map[string]*tenantQueue // of the tenants with queued threads
	ready      readyTenants
	lastNumber uint64
}

// tenantQueue has the threads of one tenant.
type tenantQueue struct {
	tenant  string
	threads []numberedThread // including removed ones, but for the first
	waiting int              // those that are not removed
	place   int              // in ready, or notReady
}

// numberedThread is a thread with its place in the order of all threads.
type numberedThread struct {
	thread string
	number uint64
}

// notReady is the place of a tenant that had no free slot when it was looked at last.
const notReady = -1

// maxQueuedThreads is the largest number of queued threads. The store knows all
// threads: the scheduler finds the others when the queue has room.
const maxQueuedThreads = 1 << 16

// enqueueThread adds a thread of a tenant at the end.
func (q *slotQueue) enqueueThread(owner, thread string) {
	if q.hasThread(thread) || len(q.queued) >= maxQueuedThreads {
		return
	}
	if q.queued == nil {
		q.queued, q.tenants = make(map[string]uint64), make(map[string]*tenantQueue)
	}
	q.lastNumber++
	q.queued[thread] = q.lastNumber
	t := q.tenants[owner]
	if t == nil {
		t = &tenantQueue{tenant: owner, place: notReady}
		q.tenants[owner] = t
	}
	t.threads = append(t.threads, numberedThread{thread, q.lastNumber})
	t.waiting++
	if t.waiting == 1 {
		heap.Push(&q.ready, t)
	}
}

// hasThread reports whether a thread is queued.
func (q *slotQueue) hasThread(thread string) bool {
	_, in := q.queued[thread]
	return in
}

// removeThread removes a thread of a tenant.
func (q *slotQueue) removeThread(owner, thread string) {
	if q.hasThread(thread) {
		delete(q.queued, thread)
		q.dropRemoved(q.tenants[owner])
	}
}

// dropRemoved restores the order of a tenant that has one thread less.
func (q *slotQueue) dropRemoved(t *tenantQueue) {
	if t.waiting--; t.waiting == 0 {
		if t.place != notReady {
			heap.Remove(&q.ready, t.place)
		}
		delete(q.tenants, t.tenant)
		return
	}
	isRemoved := func(x numberedThread) bool { return q.queued[x.thread] != x.number }
	for isRemoved(t.threads[0]) {
		t.threads = t.threads[1:]
	}
	if len(t.threads) > 2*t.waiting+64 {
		t.threads = slices.DeleteFunc(t.threads, isRemoved)
	}
	if t.place != notReady {
		heap.Fix(&q.ready, t.place)
	}
}

// takeThreads removes the first n threads and returns them. freeSlots returns how many
// threads of a tenant may be among them; the others of the tenant stay, until readyTenant
// is called.
func (q *slotQueue) takeThreads(n int, freeSlots func(owner string) int) []string {
	var out []string
	var taken map[string]int // of tenants with a limit
	for len(out) < n && len(q.ready) > 0 {
		t := q.ready[0]
		free := freeSlots(t.tenant)
		if taken[t.tenant] >= free {
			heap.Pop(&q.ready)
			continue
		}
		if free < math.MaxInt {
			if taken == nil {
				taken = make(map[string]int)
			}
			taken[t.tenant]++
		}
		thread := t.threads[0].thread
		delete(q.queued, thread)
		q.dropRemoved(t)
		out = append(out, thread)
	}
	return out
}

// readyTenant lets the threads of a tenant be taken again. It reports whether there are
// any.
func (q *slotQueue) readyTenant(owner string) bool {
	t := q.tenants[owner]
	if t != nil && t.place == notReady {
		heap.Push(&q.ready, t)
	}
	return t != nil
}

// readyTenants is a heap of the tenants whose threads may be taken, by the number of their
// first thread.
type readyTenants []*tenantQueue

// Len is that of heap.Interface.
func (r *readyTenants) Len() int { return len(*r) }

// Less is that of heap.Interface.
func (r *readyTenants) Less(i, j int) bool {
	return (*r)[i].threads[0].number < (*r)[j].threads[0].number
}

// Swap is that of heap.Interface.
func (r *readyTenants) Swap(i, j int) {
	list := *r
	list[i], list[j] = list[j], list[i]
	list[i].place, list[j].place = i, j
}

// Push is that of heap.Interface.
func (r *readyTenants) Push(x any) {
	t := x.(*tenantQueue) //nolint:forcetypeassert,errcheck // only those are pushed
	t.place = len(*r)
	*r = append(*r, t)
}

// Pop is that of heap.Interface.
func (r *readyTenants) Pop() any {
	last := len(*r) - 1
	t := (*r)[last]
	(*r)[last] = nil
	*r = (*r)[:last]
	t.place = notReady
	return t
}
