package capacity

import "time"

// Holder is the share of a limiter that a live run holds, or a run that is about to
// begin. It must not be copied after Init.
type Holder struct {
	limiter *Limiter
	owner   SlotOwner
	thread  string
	user    slotUser
	caller  string // who has started the run

	previous, next *Holder // of those with slots; Limiter.mu guards them

	heldBytes       countedBytes
	continuingBytes countedBytes // until the run is evicted

	// The fields below belong to the owner, which calls Reserve, RequeueThread and Release
	// in turn.
	mayExceedOnce bool      // the run was admitted for the writes of its superstep
	isRequeued    bool      // the thread waits in the memory queue when its run is evicted
	pruneMark     PruneMark // of its loop when it was evicted
	hasSlot       bool      // changed under Limiter.mu as well

	// Limiter.mu guards the fields below.
	admittedAt   time.Duration // uptime when the run was let in
	evictedBytes int64         // its bytes when it is evicted
	offersSlot   bool          // because it waits for workers
}

// SlotOwner is asked by a limiter whether it offers the slot of its run.
type SlotOwner interface {
	// ReconsiderSlot has the owner call OfferSlot if its run still only waits for workers.
	// The limiter calls it under its lock: it does not block.
	ReconsiderSlot()
}

// Grant is the result of admitting a run.
type Grant struct {
	HeldBytes int64     // counted bytes of the run
	PruneMark PruneMark // of its loop, if the run was evicted before
}

// Init prepares a holder that holds nothing. Without an owner it offers no slot.
func (h *Holder) Init(c *Limiter, thread string, owner SlotOwner) {
	h.limiter, h.thread, h.owner = c, thread, owner
	h.user = c.slots.tenantOf(thread)
}

// AddBytes adds to the bytes that the run holds.
func (h *Holder) AddBytes(delta int64) {
	c := &h.limiter.bytes
	h.heldBytes.addBytes(delta, &c.live, c.share)
	h.continuingBytes.addBytes(delta, &c.continuing, c.share)
}

// releaseBytes removes the run's bytes from the counts.
func (h *Holder) releaseBytes() {
	c := &h.limiter.bytes
	h.heldBytes.removeBytes(&c.live, c.share)
	h.continuingBytes.removeBytes(&c.continuing, c.share)
}

// Reserve takes a slot for a run that a caller has started, and the memory that the run
// needs. The error is ErrNoCapacity, with the needed bytes if memory is missing, or with the
// tenant or caller that has as many slots as it may.
func (h *Holder) Reserve(caller string, need int64) (Grant, error) {
	c := h.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots.setCaller(h, caller)
	granted, was := c.granted[h.thread]
	c.endGrantLocked(h.thread)
	switch {
	case c.isClosed:
		return Grant{}, &NoCapacityError{caller: h.user.knownCaller(), IsClosed: true}
	case c.usedSlots >= c.maxRuns:
		c.requestSlotsLocked()
		return Grant{}, &NoCapacityError{caller: h.user.knownCaller()}
	case c.slots.checkFree(h.user) != nil:
		c.requestOwnSlotsLocked(h.user)
		return Grant{}, c.slots.checkFree(h.user)
	case need < c.bytes.share, was && need <= granted.needBytes:
	case !was && c.HasWaiters(), !c.bytes.hasRoom(need): // others came first, or there is no memory
		return Grant{}, &NoCapacityError{NeedBytes: max(need, granted.needBytes)}
	}
	c.usedSlots++
	c.slots.addSlot(h)
	h.hasSlot, h.admittedAt, h.mayExceedOnce = true, c.uptime(), was
	need = max(need, granted.needBytes)
	h.AddBytes(need)
	c.requestSlotsLocked()
	c.requestOwnSlotsLocked(h.user)
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

// RequestDiscard decides whether the run stops here because there is no memory for the
// writes of a superstep. A run that was admitted for its first superstep keeps these
// writes.
func (h *Holder) RequestDiscard(isFirst bool) bool {
	if !h.limiter.IsExceeded() || isFirst && h.mayExceedOnce {
		return false
	}
	return h.EvictRun(false)
}

// EvictRun decides whether the run stops here for now. The last heavy run continues,
// unless others wait and its turn is over. With onlyForTurns that is the only reason.
func (h *Holder) EvictRun(onlyForTurns bool) bool {
	c := h.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	held := h.heldBytes.held.Load()
	switch {
	case h.evictedBytes > 0:
		return true
	case c.isClosed, held < c.bytes.share:
		return false
	case c.HasWaiters() && c.uptime()-h.admittedAt >= HeavyTurn:
	case onlyForTurns, !c.bytes.isExceeded(), c.bytes.continuing.heavyRuns.Load() <= 1:
		return false
	}
	h.evictedBytes = held
	h.continuingBytes.removeBytes(&c.bytes.continuing, c.bytes.share)
	return true
}

// IsEvicted reports whether EvictRun has decided so.
func (h *Holder) IsEvicted() bool {
	h.limiter.mu.Lock()
	defer h.limiter.mu.Unlock()
	return h.evictedBytes > 0
}

// RequeueThread makes Release put the thread of an evicted run into the memory
// queue.
func (h *Holder) RequeueThread(mark PruneMark) { h.pruneMark, h.isRequeued = mark, true }

// OfferSlot decides whether a run releases its slot because it only waits for
// workers, or records that it could.
func (h *Holder) OfferSlot() bool {
	c := h.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.isClosed || !h.hasSlot || h.offersSlot:
		return false
	case c.usedSlots-c.offeredSlots <= c.slotThreshold && !c.slots.isShort(h.user):
		c.idleHolders[h] = struct{}{}
		c.slots.addIdle(h)
		return false
	}
	c.removeIdleLocked(h)
	h.offersSlot = true
	c.offeredSlots++
	c.slots.addOffer(h)
	return true
}

// Release releases the slot and the memory. It reports whether other runs may
// wait for them.
func (h *Holder) Release() (awaited bool) {
	c := h.limiter
	if !h.hasSlot { // then it is neither evicted nor idle
		h.releaseBytes()
		return c.HasWaiters()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.releaseBytes()
	c.slotQueue.removeThread(h.thread) // a run with a slot does not wait, even if it was queued late
	c.memoryQueue.removeThread(h.thread)
	h.requeueLocked()
	h.endOfferLocked()
	c.slots.removeSlot(h)
	h.hasSlot = false
	c.usedSlots--
	tenantWaits := h.user.tenant != "" && c.slotQueue.readyUser(h.user)
	return c.usedSlots+1 >= c.maxRuns || c.HasWaiters() || tenantWaits
}

// requeueLocked puts the thread of an evicted run into the memory queue if RequeueThread
// has asked for it. The caller holds mu.
func (h *Holder) requeueLocked() {
	if h.evictedBytes == 0 || !h.isRequeued {
		return
	}
	c := h.limiter
	c.memoryQueue.enqueueWaiter(memoryWaiter{thread: h.thread, needBytes: h.evictedBytes, pruneMark: h.pruneMark, queuedAt: c.uptime()})
}

// endOfferLocked ends an offer that OfferSlot began. The caller holds mu.
func (h *Holder) endOfferLocked() {
	delete(h.limiter.idleHolders, h)
	if h.offersSlot {
		h.limiter.offeredSlots--
	}
}

// PruneMark is a live run's knowledge of the last prune of its thread. It is kept
// while the run is evicted.
type PruneMark struct {
	At      time.Duration // uptime of the process, 0 = not yet
	Seq     uint64        // the thread's last checkpoint then
	HasMore bool          // there was more to cut off than is cut off at once
}
