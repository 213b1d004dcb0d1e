package capacity

import (
	"math"
	"sync/atomic"
	"time"
)

// Holder is what one live run, or one that is about to begin, holds of a limiter. It
// must not be copied after Init.
type Holder struct {
	limiter *Limiter
	owner   SlotOwner
	thread  string

	heldBytes atomic.Int64

	// What follows is the owner's: Reserve, RequeueThread and Release are called one
	// after another.
	mayExceedOnce bool      // the run was let in for what its superstep will write
	isRequeued    bool      // the thread waits in the memory queue when its run is evicted
	pruneMark     PruneMark // what its loop knows of the past then
	hasSlot       bool      // changed under Limiter.mu as well

	// Limiter.mu guards what follows.
	admittedAt   time.Duration // uptime when the run was let in
	evictedBytes int64         // what it holds, when it is evicted
	offersSlot   bool          // for want of workers
}

// SlotOwner is asked by a limiter whether it offers the slot of its run.
type SlotOwner interface {
	// ReconsiderSlot has the owner call OfferSlot if its run still only waits for workers.
	// The limiter calls it under its lock: it does not block.
	ReconsiderSlot()
}

// Grant is what a run is let in with.
type Grant struct {
	HeldBytes int64     // bytes that are counted of it
	PruneMark PruneMark // what its loop knew of the past, if it was evicted before
}

// Init prepares a holder that holds nothing. Without an owner it offers no slot.
func (h *Holder) Init(c *Limiter, thread string, owner SlotOwner) {
	h.limiter, h.thread, h.owner = c, thread, owner
}

// AddBytes notes that the run holds more, or less.
func (h *Holder) AddBytes(delta int64) {
	now := h.heldBytes.Add(delta)
	if delta == 0 || now < 0 { // the run is over
		return
	}
	h.limiter.bytes.replaceHeld(now-delta, now)
}

// releaseBytes notes that nothing of the run is held any more.
func (h *Holder) releaseBytes() {
	if before := h.heldBytes.Swap(math.MinInt64 / 2); before > 0 {
		h.limiter.bytes.replaceHeld(before, 0)
	}
}

// Reserve takes a slot, and the memory that the run needs. The error is
// ErrNoCapacity; it has the bytes that the run needs if memory is the cause.
func (h *Holder) Reserve(need int64) (Grant, error) {
	c := h.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	granted, was := c.granted[h.thread]
	c.endGrantLocked(h.thread)
	switch {
	case c.isClosed || c.usedSlots >= c.maxRuns:
		c.requestSlotsLocked()
		return Grant{}, ErrNoCapacity
	case need < c.bytes.share, was && need <= granted.needBytes:
	case !was && c.HasWaiters(), !c.bytes.hasRoom(need): // others came first, or there is no memory
		return Grant{}, &NoCapacityError{NeedBytes: max(need, granted.needBytes)}
	}
	c.usedSlots++
	h.hasSlot, h.admittedAt, h.mayExceedOnce = true, c.uptime(), was
	need = max(need, granted.needBytes)
	h.AddBytes(need)
	c.requestSlotsLocked()
	return Grant{HeldBytes: need, PruneMark: granted.pruneMark}, nil
}

// RequestYield decides whether the run ends here between two supersteps: the live runs
// hold too much, or its time share is over and others wait.
func (h *Holder) RequestYield() bool {
	exceeded := h.limiter.IsExceeded()
	if !exceeded && !h.limiter.HasWaiters() {
		return false
	}
	return h.EvictRun(!exceeded)
}

// RequestDiscard decides whether the run ends here because there is no memory for what a
// superstep writes. A run that was let in for its first superstep keeps that.
func (h *Holder) RequestDiscard(isFirst bool) bool {
	if !h.limiter.IsExceeded() || isFirst && h.mayExceedOnce {
		return false
	}
	return h.EvictRun(false)
}

// EvictRun decides that the run ends here for now. The last heavy run goes on, unless
// others wait and its time share is over; that alone counts if onlyForTurns.
func (h *Holder) EvictRun(onlyForTurns bool) bool {
	c := h.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	held := h.heldBytes.Load()
	switch {
	case h.evictedBytes > 0:
		return true
	case c.isClosed, held < c.bytes.share:
		return false
	case c.HasWaiters() && c.uptime()-h.admittedAt >= HeavyTurn:
	case onlyForTurns, !c.bytes.isExceeded(), c.bytes.heavyRuns.Load()-c.evictedCount <= 1:
		return false
	}
	h.evictedBytes = held
	c.evictedCount++
	c.bytes.evicting.Add(held)
	return true
}

// IsEvicted reports whether EvictRun has decided so.
func (h *Holder) IsEvicted() bool {
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	return h.evictedBytes > 0
}

// RequeueThread has Release put the thread of an evicted run into the memory queue.
func (h *Holder) RequeueThread(mark PruneMark) { h.pruneMark, h.isRequeued = mark, true }

// OfferSlot decides that a run gives its slot up because it only waits for workers,
// or records that it could.
func (h *Holder) OfferSlot() bool {
	c := h.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isClosed || !h.hasSlot || h.offersSlot:
		return false
	case c.usedSlots-c.offeredSlots <= c.slotThreshold:
		c.idleHolders[h] = struct{}{}
		return false
	}
	delete(c.idleHolders, h)
	h.offersSlot = true
	c.offeredSlots++
	return true
}

// Release gives back what is held. It reports whether others may wait for it.
func (h *Holder) Release() (awaited bool) {
	c := h.limiter
	if !h.hasSlot { // then it is neither evicted nor idle
		h.releaseBytes()
		return c.HasWaiters()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.releaseBytes()
	c.slotQueue.removeThread(h.thread) // it waits for nothing, even if it was queued late
	c.memoryQueue.removeThread(h.thread)
	h.endEvictionLocked()
	h.endOfferLocked()
	h.hasSlot = false
	c.usedSlots--
	return c.usedSlots+1 >= c.maxRuns || c.HasWaiters()
}

// endEvictionLocked ends what EvictRun began. The caller holds mu.
func (h *Holder) endEvictionLocked() {
	if h.evictedBytes == 0 {
		return
	}
	c := h.limiter
	c.evictedCount--
	c.bytes.evicting.Add(-h.evictedBytes)
	if h.isRequeued {
		c.memoryQueue.enqueueWaiter(memoryWaiter{thread: h.thread, needBytes: h.evictedBytes, pruneMark: h.pruneMark, queuedAt: c.uptime()})
	}
}

// endOfferLocked ends what OfferSlot began. The caller holds mu.
func (h *Holder) endOfferLocked() {
	delete(h.limiter.idleHolders, h)
	if h.offersSlot {
		h.limiter.offeredSlots--
	}
}

// PruneMark is what a live run knows of the last prune of its thread. It is kept while
// the run is evicted.
type PruneMark struct {
	At      time.Duration // uptime of the process, 0 = not yet
	Seq     uint64        // the thread's last checkpoint then
	HasMore bool          // there was more to cut off than is cut off at once
}
