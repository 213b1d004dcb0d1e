// Package capacity decides which runs are live in a process. It limits their number
// and their memory, and queues the threads that wait for either.
package capacity

import (
	"sync"
	"time"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// A live run takes a slot of the Options.MaxRuns of the process. A run that needs no
// driver takes no slot. When all slots are taken, a new run is refused before it is
// stored, and a stored run waits in the slot queue. The same holds for the runs of a tenant,
// and for those that one caller has started, where it has as many slots as it may.

// Limiter limits the live runs of a process. Its lock is the last lock to be taken.
// Under it the limiter calls only functions that do not block, see Options.Wake and
// SlotOwner.
type Limiter struct {
	maxRuns int
	// slotThreshold is the number of used slots up to which no holder offers
	// its slot.
	slotThreshold int
	uptime        func() time.Duration
	wake          func()
	bytes         byteCounts
	memoryQueue   memoryQueue // threads that wait for memory

	mu           sync.Mutex
	isClosed     bool
	usedSlots    int                     // slots that holders have
	offeredSlots int                     // of them, those offered because no worker serves the run
	idleHolders  map[*Holder]struct{}    // those that could offer their slots
	granted      map[string]memoryWaiter // memory reserved for threads taken from the memory queue, until they begin
	slotQueue    slotQueue               // threads that wait for a slot
	slots        slotUses
}

// Options tune a limiter.
type Options struct {
	MaxRuns  int                  // live runs
	MaxBytes int64                // bytes that they hold
	Tenants  runtime.TenantLimits // live runs of each tenant; nil = no tenant has a limit
	Callers  runtime.CallerLimits // live runs that each caller has started; nil = no caller has a limit
	Uptime   func() time.Duration // time since the process began, by a monotonic clock
	Wake     func()               // makes the caller look at the queues; it does not block
}

// New makes a limiter of a process without live runs.
func New(o Options) *Limiter {
	l := &Limiter{
		maxRuns: o.MaxRuns, slotThreshold: o.MaxRuns - max(1, o.MaxRuns/8), uptime: o.Uptime, wake: o.Wake,
		bytes: newByteCounts(o.MaxBytes, o.MaxRuns), idleHolders: make(map[*Holder]struct{}), granted: make(map[string]memoryWaiter),
		slots: slotUses{tenants: o.Tenants, callers: o.Callers},
	}
	l.slots.recheckCallers(l.idleHolders)
	return l
}

// Close ends the admission of runs, and evictions: those that are live end as they
// would without limits.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isClosed = true
}

// ShareBytes returns the size from which a run is heavy.
func (l *Limiter) ShareBytes() int64 { return l.bytes.share }

// HeldBytes returns the number of bytes that live runs hold.
func (l *Limiter) HeldBytes() int64 { return l.bytes.live.held.Load() }

// IsExceeded reports whether the runs that continue hold too much.
func (l *Limiter) IsExceeded() bool { return l.bytes.isExceeded() }

// HasWaiters reports whether threads wait for memory.
func (l *Limiter) HasWaiters() bool { return l.memoryQueue.countWaiters() > 0 }

// HasFreeSlot reports whether a further light run may go live here.
func (l *Limiter) HasFreeSlot() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasFreeSlotLocked()
}

// hasFreeSlotLocked reports whether a slot is free. The caller holds mu.
func (l *Limiter) hasFreeSlotLocked() bool { return !l.isClosed && l.usedSlots < l.maxRuns }

// CheckSlot returns nil if a further light run of a thread may go live here, and else
// ErrNoCapacity, with the tenant that has as many slots as it may. It does not know who has
// started the run.
func (l *Limiter) CheckSlot(thread string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasFreeSlotLocked() {
		return ErrNoCapacity
	}
	return l.slots.checkFree(l.slots.tenantOf(thread))
}

// RecheckTenants looks at the queues again, because limits of tenants or callers have
// changed.
func (l *Limiter) RecheckTenants() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots.recheckCallers(l.idleHolders)
	l.slotQueue.readyAll()
	l.wake()
}

// EnqueueThread queues a thread that can't be taken because of err. run is the run that
// waits. Capacity released just before has missed the thread, so the queues are looked at
// again.
func (l *Limiter) EnqueueThread(thread, run string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	user, isKnown := callerOf(err)
	if !isKnown {
		user = l.slots.tenantOf(thread)
	}
	if need := missingBytes(err); need > 0 {
		l.memoryQueue.enqueueWaiter(memoryWaiter{thread: thread, needBytes: need, queuedAt: l.uptime()})
	} else {
		l.slotQueue.enqueueThread(user, thread, run)
	}
	if l.hasFreeSlotLocked() && l.slots.checkFree(user) == nil {
		l.slotQueue.readyUser(user)
		l.wake()
	}
}

// EnqueueForSlots queues threads for slots. It does not call Wake.
func (l *Limiter) EnqueueForSlots(threads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, thread := range threads {
		l.slotQueue.enqueueThread(l.slots.tenantOf(thread), thread, "")
	}
}

// NoteNextRun notes which run of a thread is the next to go on. A thread that waits for a
// slot of a caller, and whose next run may be that of another, is looked at again.
func (l *Limiter) NoteNextRun(thread, run string) {
	if !l.slots.countsCallers.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x, in := l.slotQueue.queued[thread]
	if !in || !x.queue.user.isCaller || x.run == run {
		return
	}
	l.slotQueue.removeThread(thread)
	l.slotQueue.enqueueThread(x.queue.user.ofTenant(), thread, "")
	l.wake()
}

// IsQueued reports whether a thread waits for a slot or for memory.
func (l *Limiter) IsQueued(thread string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slotQueue.hasThread(thread) || l.memoryQueue.hasThread(thread)
}

// CountQueued returns the number of waiting threads.
func (l *Limiter) CountQueued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slotQueue.queued) + len(l.memoryQueue.queued)
}

// GrantWaiting takes threads from the queues. From the memory queue it takes at most
// mostForMemory, while there is memory, which stays reserved until they begin. From
// the slot queue it takes threads while there are slots, and passes over those of tenants
// and callers without free slots.
func (l *Limiter) GrantWaiting(mostForMemory int) (threads []string, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	places := l.maxRuns - l.usedSlots
	if l.isClosed || places <= 0 {
		return nil, true
	}
	for len(threads) < min(places, mostForMemory) {
		x, ok := l.memoryQueue.takeNext(l.uptime(), l.bytes.hasRoom)
		if !ok {
			break
		}
		l.granted[x.thread] = x
		l.bytes.replaceHeld(0, x.needBytes)
		threads = append(threads, x.thread)
	}
	return append(threads, l.slotQueue.takeThreads(places-len(threads), l.slots.countFree)...), false
}

// EndGrants releases the reservations of GrantWaiting for processed threads. Slots that
// were not taken are free for other threads of the tenants and callers.
func (l *Limiter) EndGrants(threads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, thread := range threads {
		l.endGrantLocked(thread)
		user, isKnown := l.slotQueue.endTaken(thread)
		if !isKnown {
			user = l.slots.tenantOf(thread)
		}
		l.slotQueue.readyUser(user)
	}
}

// endGrantLocked releases the memory that GrantWaiting reserved for a thread. The
// caller holds mu.
func (l *Limiter) endGrantLocked(thread string) {
	if x, ok := l.granted[thread]; ok {
		delete(l.granted, thread)
		l.bytes.replaceHeld(x.needBytes, 0)
	}
}

// requestSlotsLocked asks holders that could offer their slots to do so, where slots
// are short. The caller holds mu.
func (l *Limiter) requestSlotsLocked() {
	short := l.usedSlots - l.offeredSlots - l.slotThreshold
	for h := range l.idleHolders {
		if short <= 0 || l.isClosed {
			return
		}
		short--
		l.removeIdleLocked(h)
		h.owner.ReconsiderSlot()
	}
}

// requestOwnSlotsLocked asks holders of a tenant or of a caller that is short of slots. The
// caller holds mu.
func (l *Limiter) requestOwnSlotsLocked(user slotUser) {
	if user.isCaller {
		l.requestOwnSlotsLocked(user.ofTenant())
	}
	short := l.slots.countMissing(user)
	if short == 0 || l.isClosed {
		return
	}
	for _, h := range l.slots.listIdle(user, short) {
		l.removeIdleLocked(h)
		h.owner.ReconsiderSlot()
	}
}

// removeIdleLocked ends the wait for a time when the slot is needed. The caller holds mu.
func (l *Limiter) removeIdleLocked(h *Holder) {
	delete(l.idleHolders, h)
	l.slots.removeIdle(h)
}

// ListTenants lists the tenants with a limit that have live runs.
func (l *Limiter) ListTenants() (list []runtime.TenantHolding) {
	l.mu.Lock()
	used := make(map[slotUser]int, len(l.slots.byUser))
	for user, u := range l.slots.byUser {
		if !user.isCaller {
			used[user] = u.used
		}
	}
	l.mu.Unlock()
	for user, n := range used {
		if most, isLimited := l.slots.findLimit(user); isLimited {
			list = append(list, runtime.TenantHolding{Tenant: user.tenant, Of: runtime.HoldingLiveRuns, Held: int64(n), Most: most})
		}
	}
	return list
}

// Counts are the counts of a limiter.
type Counts struct {
	HeldBytes, HeavyRuns                 int64
	ContinuingBytes, ContinuingHeavyRuns int64 // of the runs that are not being evicted
	UsedSlots, OfferedSlots, IdleHolders int
	GrantedThreads, Waiters              int // Waiters wait for memory
	TenantSlots                          int // slots that are counted for their tenants
	CallerSlots                          int // and for their callers
}

// Counts returns the present counts.
func (l *Limiter) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofTenants, ofCallers := l.slots.countSlots()
	return Counts{
		HeldBytes: l.bytes.live.held.Load(), HeavyRuns: l.bytes.live.heavyRuns.Load(),
		ContinuingBytes: l.bytes.continuing.held.Load(), ContinuingHeavyRuns: l.bytes.continuing.heavyRuns.Load(),
		UsedSlots: l.usedSlots, OfferedSlots: l.offeredSlots, IdleHolders: len(l.idleHolders),
		GrantedThreads: len(l.granted), Waiters: l.memoryQueue.countWaiters(), TenantSlots: ofTenants, CallerSlots: ofCallers,
	}
}
