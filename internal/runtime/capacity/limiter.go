// Package capacity decides which runs are live in a process. It limits their number
// and their memory, and queues the threads that wait for either.
package capacity

import (
	"sync"
	"time"
)

// A live run takes a slot of the Options.MaxRuns of the process. A run that needs no
// driver takes no slot. When all slots are taken, a new run is refused before it is
// stored, and a stored run waits in the slot queue.

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
}

// Options tune a limiter.
type Options struct {
	MaxRuns  int                  // live runs
	MaxBytes int64                // bytes that they hold
	Uptime   func() time.Duration // time since the process began, by a monotonic clock
	Wake     func()               // makes the caller look at the queues; it does not block
}

// New makes a limiter of a process without live runs.
func New(o Options) *Limiter {
	return &Limiter{
		maxRuns: o.MaxRuns, slotThreshold: o.MaxRuns - max(1, o.MaxRuns/8), uptime: o.Uptime, wake: o.Wake,
		bytes: newByteCounts(o.MaxBytes, o.MaxRuns), idleHolders: make(map[*Holder]struct{}), granted: make(map[string]memoryWaiter),
	}
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

// EnqueueThread queues a thread that can't be taken because of err. Capacity released
// just before has missed the thread, so the queues are looked at again.
func (l *Limiter) EnqueueThread(thread string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if need := missingBytes(err); need > 0 {
		l.memoryQueue.enqueueWaiter(memoryWaiter{thread: thread, needBytes: need, queuedAt: l.uptime()})
	} else {
		l.slotQueue.enqueueThread(thread)
	}
	if l.hasFreeSlotLocked() {
		l.wake()
	}
}

// EnqueueForSlots queues threads for slots. It does not call Wake.
func (l *Limiter) EnqueueForSlots(threads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, thread := range threads {
		l.slotQueue.enqueueThread(thread)
	}
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
// the slot queue it takes threads while there are slots.
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
	return append(threads, l.slotQueue.takeThreads(places-len(threads))...), false
}

// EndGrants releases the reservations of GrantWaiting for processed threads.
func (l *Limiter) EndGrants(threads []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, thread := range threads {
		l.endGrantLocked(thread)
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
		delete(l.idleHolders, h)
		h.owner.ReconsiderSlot()
	}
}

// Counts are the counts of a limiter.
type Counts struct {
	HeldBytes, HeavyRuns                 int64
	ContinuingBytes, ContinuingHeavyRuns int64 // of the runs that are not being evicted
	UsedSlots, OfferedSlots, IdleHolders int
	GrantedThreads, Waiters              int // Waiters wait for memory
}

// Counts returns the present counts.
func (l *Limiter) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Counts{
		HeldBytes: l.bytes.live.held.Load(), HeavyRuns: l.bytes.live.heavyRuns.Load(),
		ContinuingBytes: l.bytes.continuing.held.Load(), ContinuingHeavyRuns: l.bytes.continuing.heavyRuns.Load(),
		UsedSlots: l.usedSlots, OfferedSlots: l.offeredSlots, IdleHolders: len(l.idleHolders),
		GrantedThreads: len(l.granted), Waiters: l.memoryQueue.countWaiters(),
	}
}
