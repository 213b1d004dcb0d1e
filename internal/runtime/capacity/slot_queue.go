package capacity

import (
	"container/heap"
	"math"
	"slices"
)

// slotQueue is the queue of threads that need a slot. It saves the scheduler from
// reading each of them again and again. Limiter.mu guards it.
//
// Each tenant has a queue of its own, and in it each caller with a limit, so that the
// threads of those without a free slot of their own are passed over at once, whatever
// their number.
type slotQueue struct {
	queued     map[string]queuedThread // by thread
	tenants    map[string]*tenantQueue // of the tenants with queued threads
	ready      readyHeap[*tenantQueue]
	lastNumber uint64
	taken      map[string]slotUser // threads of callers that were taken, until their grants end
}

// queuedThread is where a thread stands.
type queuedThread struct {
	number uint64
	run    string // that waits; "" = not known
	queue  *userQueue
}

// tenantQueue has the queues of one tenant.
type tenantQueue struct {
	tenant string
	users  map[slotUser]*userQueue
	ready  readyHeap[*userQueue]
	place  int // in slotQueue.ready, or notReady
}

// userQueue has the threads of one caller or, where the user is no caller, those of the
// tenant whose callers are not known or have no limit.
type userQueue struct {
	user    slotUser
	tenant  *tenantQueue
	threads []numberedThread // including removed ones, but for the first
	waiting int              // those that are not removed
	place   int              // in tenantQueue.ready, or notReady
}

// numberedThread is a thread with its place in the order of all threads.
type numberedThread struct {
	thread string
	number uint64
}

// maxQueuedThreads is the largest number of queued threads. The store knows all
// threads: the scheduler finds the others when the queue has room.
const maxQueuedThreads = 1 << 16

// enqueueThread adds a thread at the end of the queue of a user.
func (q *slotQueue) enqueueThread(user slotUser, thread, run string) {
	if q.hasThread(thread) || len(q.queued) >= maxQueuedThreads {
		return
	}
	q.lastNumber++
	u := q.openQueue(user)
	q.queued[thread] = queuedThread{q.lastNumber, run, u}
	u.threads = append(u.threads, numberedThread{thread, q.lastNumber})
	u.waiting++
	if u.waiting == 1 {
		heap.Push(&u.tenant.ready, u)
		q.readyTenant(u.tenant)
	}
}

// openQueue returns the queue of a user, which may be new.
func (q *slotQueue) openQueue(user slotUser) *userQueue {
	if q.queued == nil {
		q.queued, q.tenants, q.taken = make(map[string]queuedThread), make(map[string]*tenantQueue), make(map[string]slotUser)
	}
	t := q.tenants[user.tenant]
	if t == nil {
		t = &tenantQueue{tenant: user.tenant, users: make(map[slotUser]*userQueue), place: notReady}
		q.tenants[user.tenant] = t
	}
	u := t.users[user]
	if u == nil {
		u = &userQueue{user: user, tenant: t, place: notReady}
		t.users[user] = u
	}
	return u
}

// hasThread reports whether a thread is queued.
func (q *slotQueue) hasThread(thread string) bool {
	_, in := q.queued[thread]
	return in
}

// removeThread removes a thread.
func (q *slotQueue) removeThread(thread string) {
	if x, in := q.queued[thread]; in {
		delete(q.queued, thread)
		q.dropRemoved(x.queue)
	}
}

// dropRemoved restores the order of a queue that has one thread less.
func (q *slotQueue) dropRemoved(u *userQueue) {
	t := u.tenant
	if u.waiting--; u.waiting == 0 {
		if u.place != notReady {
			heap.Remove(&t.ready, u.place)
		}
		delete(t.users, u.user)
		q.replaceTenant(t)
		if len(t.users) == 0 {
			delete(q.tenants, t.tenant)
		}
		return
	}
	isRemoved := func(x numberedThread) bool { return q.queued[x.thread].number != x.number }
	for isRemoved(u.threads[0]) {
		u.threads = u.threads[1:]
	}
	if len(u.threads) > 2*u.waiting+64 {
		u.threads = slices.DeleteFunc(u.threads, isRemoved)
	}
	if u.place != notReady {
		heap.Fix(&t.ready, u.place)
		q.replaceTenant(t)
	}
}

// replaceTenant restores the order of the tenants when the queues of one have changed.
func (q *slotQueue) replaceTenant(t *tenantQueue) {
	switch {
	case t.place == notReady:
	case len(t.ready) == 0:
		heap.Remove(&q.ready, t.place)
	default:
		heap.Fix(&q.ready, t.place)
	}
}

// readyTenant lets the threads of a tenant be taken again.
func (q *slotQueue) readyTenant(t *tenantQueue) {
	if t.place == notReady && len(t.ready) > 0 {
		heap.Push(&q.ready, t)
		return
	}
	q.replaceTenant(t)
}

// readyUser lets the threads of a user, and of its tenant, be taken again. It reports
// whether there are any.
func (q *slotQueue) readyUser(user slotUser) bool {
	t := q.tenants[user.tenant]
	if t == nil {
		return false
	}
	if u := t.users[user]; u != nil && u.place == notReady {
		heap.Push(&t.ready, u)
	}
	q.readyTenant(t)
	return len(t.ready) > 0
}

// readyAll lets all threads be taken again.
func (q *slotQueue) readyAll() {
	for _, t := range q.tenants {
		for user := range t.users {
			q.readyUser(user)
		}
	}
}

// takeThreads removes the first n threads and returns them. countFree returns how many
// threads of a user may be among them; the others of the user stay, until readyUser is
// called.
func (q *slotQueue) takeThreads(n int, countFree func(slotUser) int) []string {
	var out []string
	g := slotGrants{countFree: countFree}
	for len(out) < n && len(q.ready) > 0 {
		t := q.ready[0]
		if !g.hasRoom(slotUser{tenant: t.tenant}) {
			heap.Pop(&q.ready)
			continue
		}
		u := t.ready[0]
		if u.user.isCaller && !g.hasRoom(u.user) {
			heap.Pop(&t.ready)
			q.replaceTenant(t)
			continue
		}
		g.addSlot(u.user.ofTenant())
		thread := u.threads[0].thread
		if u.user.isCaller {
			g.addSlot(u.user)
			q.taken[thread] = u.user
		}
		delete(q.queued, thread)
		q.dropRemoved(u)
		out = append(out, thread)
	}
	return out
}

// endTaken forgets a thread that was taken. It returns whose thread it was, ok = that is
// known.
func (q *slotQueue) endTaken(thread string) (user slotUser, ok bool) {
	user, ok = q.taken[thread]
	delete(q.taken, thread)
	return user, ok
}

// slotGrants count the slots that are given away at once to users with a limit.
type slotGrants struct {
	countFree func(slotUser) int
	granted   map[slotUser]int
}

func (g *slotGrants) hasRoom(user slotUser) bool { return g.granted[user] < g.countFree(user) }

func (g *slotGrants) addSlot(user slotUser) {
	if g.countFree(user) == math.MaxInt {
		return
	}
	if g.granted == nil {
		g.granted = make(map[slotUser]int)
	}
	g.granted[user]++
}
