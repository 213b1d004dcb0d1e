// Package capacity decides which runs are live in a process. It limits their number
// and their memory, and queues the threads that wait for either.
package capacity

import (
	"sync"
	"time"
)

// A live run takes one of the Options.MaxRuns slots of the process. A run that needs
// no driver takes no slot. When all slots are taken, a new run is refused before it
// is stored, and a stored run waits in the slot queue.

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
	evictedCount int64                   // runs that are being evicted
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
func (c *Limiter) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
}

// ShareBytes returns the size from which a run is heavy.
func (c *Limiter) ShareBytes() int64 { return c.bytes.share }

// HeldBytes returns the number of bytes that live runs hold.
func (c *Limiter) HeldBytes() int64 { return c.bytes.held.Load() }

// IsExceeded reports whether the runs that continue hold too much.
func (c *Limiter) IsExceeded() bool { return c.bytes.isExceeded() }

// HasWaiters reports whether threads wait for memory.
func (c *Limiter) HasWaiters() bool { return c.memoryQueue.countWaiters() > 0 }

// HasFreeSlot reports whether one more light run may go live here.
func (c *Limiter) HasFreeSlot() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasFreeSlotLocked()
}

// hasFreeSlotLocked reports whether a slot is free. The caller holds mu.
func (c *Limiter) hasFreeSlotLocked() bool { return !c.isClosed && c.usedSlots < c.maxRuns }

// EnqueueThread queues a thread that can't be taken because of err. Capacity released
// just before has missed the thread, so the queues are looked at again.
func (c *Limiter) EnqueueThread(thread string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if need := missingBytes(err); need > 0 {
		c.memoryQueue.enqueueWaiter(memoryWaiter{thread: thread, needBytes: need, queuedAt: c.uptime()})
	} else {
		c.slotQueue.enqueueThread(thread)
	}
	if c.hasFreeSlotLocked() {
		c.wake()
	}
}

// EnqueueForSlots queues threads for slots. It does not call Wake.
func (c *Limiter) EnqueueForSlots(threads []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, thread := range threads {
		c.slotQueue.enqueueThread(thread)
	}
}

// IsQueued reports whether a thread waits for a slot or for memory.
func (c *Limiter) IsQueued(thread string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slotQueue.hasThread(thread) || c.memoryQueue.hasThread(thread)
}

// CountQueued returns the number of waiting threads.
func (c *Limiter) CountQueued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.slotQueue.queued) + len(c.memoryQueue.queued)
}

// GrantWaiting takes threads from the queues. From the memory queue it takes at most
// mostForMemory, while there is memory, which stays reserved until they begin. From
// the slot queue it takes threads while there are slots.
func (c *Limiter) GrantWaiting(mostForMemory int) (threads []string, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	places := c.maxRuns - c.usedSlots
	if c.isClosed || places <= 0 {
		return nil, true
	}
	for len(threads) < min(places, mostForMemory) {
		x, ok := c.memoryQueue.takeNext(c.uptime(), c.bytes.hasRoom)
		if !ok {
			break
		}
		c.granted[x.thread] = x
		c.bytes.replaceHeld(0, x.needBytes)
		threads = append(threads, x.thread)
	}
	return append(threads, c.slotQueue.takeThreads(places-len(threads))...), false
}

// EndGrants releases the reservations of GrantWaiting for processed threads.
func (c *Limiter) EndGrants(threads []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, thread := range threads {
		c.endGrantLocked(thread)
	}
}

// endGrantLocked releases the memory that GrantWaiting reserved for a thread. The
// caller holds mu.
func (c *Limiter) endGrantLocked(thread string) {
	if x, ok := c.granted[thread]; ok {
		delete(c.granted, thread)
		c.bytes.replaceHeld(x.needBytes, 0)
	}
}

// requestSlotsLocked asks holders that could offer their slots to do so, where slots
// are short. The caller holds mu.
func (c *Limiter) requestSlotsLocked() {
	short := c.usedSlots - c.offeredSlots - c.slotThreshold
	for h := range c.idleHolders {
		if short <= 0 || c.isClosed {
			return
		}
		short--
		delete(c.idleHolders, h)
		h.owner.ReconsiderSlot()
	}
}

// Counts are the counts of a limiter.
type Counts struct {
	HeldBytes, EvictingBytes, HeavyRuns  int64
	UsedSlots, OfferedSlots, IdleHolders int
	EvictedRuns, GrantedThreads, Waiters int // Waiters wait for memory
}

// Counts returns the present counts.
func (c *Limiter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Counts{
		HeldBytes: c.bytes.held.Load(), EvictingBytes: c.bytes.evicting.Load(), HeavyRuns: c.bytes.heavyRuns.Load(),
		UsedSlots: c.usedSlots, OfferedSlots: c.offeredSlots, IdleHolders: len(c.idleHolders),
		EvictedRuns: int(c.evictedCount), GrantedThreads: len(c.granted), Waiters: c.memoryQueue.countWaiters(),
	}
}
