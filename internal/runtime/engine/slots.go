package engine

import (
	"errors"

	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
)

// A live run takes one of the slots of the process, Options.MaxLiveRuns of them.
// What needs no driver passes without one. When all are taken, a run that needs one
// is refused before anything is stored; what is stored already waits in the slot
// queue.

// reserveSlot takes a slot for the run that a session is about to drive. The error
// is errNoCapacity; it holds the bytes that the run needs if memory is the cause.
func (e *Engine) reserveSlot(s *session, l *loop) error {
	l.setHeldBytes(0)
	need := l.measureBytes()
	e.mu.Lock()
	defer e.mu.Unlock()
	called, was := e.grantedMemory[s.thread]
	e.dropGrant(s.thread)
	switch {
	case e.isDrained || e.usedSlots >= e.opts.MaxLiveRuns:
		e.requestSlots()
		return errNoCapacity
	case need < e.liveBytes.share, was && need <= called.NeedBytes:
	case !was && e.memoryQueue.Len() > 0, !e.liveBytes.hasRoom(need): // others came first, or there is no memory
		return &noCapacityError{needBytes: max(need, called.NeedBytes)}
	}
	e.usedSlots++
	s.hasSlot, s.admittedAt, s.mayExceedOnce = true, e.uptime(), was
	l.pruneMark = called.PruneMark
	l.setHeldBytes(max(need, called.NeedBytes))
	e.requestSlots()
	return nil
}

// grantWaiting takes threads from the queues: from the memory queue while there is
// memory, which is reserved until they begin, and from the slot queue while there
// are slots.
func (e *Engine) grantWaiting() (threads []string, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	places := e.opts.MaxLiveRuns - e.usedSlots
	if e.isDrained || places <= 0 {
		return nil, true
	}
	for len(threads) < min(places, maxParallelDue) {
		x, ok := e.memoryQueue.TakeNext(e.uptime(), e.liveBytes.hasRoom)
		if !ok {
			break
		}
		e.grantedMemory[x.Thread] = x
		e.liveBytes.updateHeld(0, x.NeedBytes)
		threads = append(threads, x.Thread)
	}
	return append(threads, e.slotQueue.TakeThreads(places-len(threads))...), false
}

// dropGrant releases the memory that grantWaiting reserved for a thread. The caller
// holds mu.
func (e *Engine) dropGrant(thread string) {
	if x, ok := e.grantedMemory[thread]; ok {
		delete(e.grantedMemory, thread)
		e.liveBytes.updateHeld(x.NeedBytes, 0)
	}
}

// endAllGrants does so for threads that have been attended to.
func (e *Engine) endAllGrants(threads []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, thread := range threads {
		e.dropGrant(thread)
	}
}

// releaseSlot releases the slot of a session and reports whether it was the last
// one taken. The caller holds mu.
func (e *Engine) releaseSlot(s *session) (wasFull bool) {
	if !s.hasSlot {
		return false
	}
	s.hasSlot = false
	e.usedSlots--
	return e.usedSlots+1 >= e.opts.MaxLiveRuns
}

// hasFreeSlot reports whether one more run may go live here, if it holds little.
func (e *Engine) hasFreeSlot() bool { return e.countFreeSlots() > 0 }

// countFreeSlots is how many more runs may go live here.
func (e *Engine) countFreeSlots() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isDrained {
		return 0
	}
	return max(0, e.opts.MaxLiveRuns-e.usedSlots)
}

// queueForCapacity queues a thread that can't be taken because of err. Capacity
// released just before has missed the thread, so the scheduler is woken.
func (e *Engine) queueForCapacity(thread string, err error) {
	if lack, ok := errors.AsType[*noCapacityError](err); ok && lack.needBytes > 0 {
		e.memoryQueue.EnqueueWaiter(scheduler.MemoryWaiter{Thread: thread, NeedBytes: lack.needBytes, QueuedAt: e.uptime()})
	} else {
		e.slotQueue.EnqueueThread(thread)
	}
	if e.hasFreeSlot() {
		e.wakeScheduler()
	}
}

// noCapacityRefusal is what a caller is told whose run can't begin because of err.
func (e *Engine) noCapacityRefusal(err error) *runtime.Error {
	if lack, ok := errors.AsType[*noCapacityError](err); ok && lack.needBytes > 0 {
		return runtime.Errorf(runtime.ReasonTooManyRuns, "the live runs of the server hold as much as they may (--max-live-bytes), and this one would hold %d bytes; "+
			"nothing was stored: try again, or another server", lack.needBytes).WithLimit("max-live-bytes", e.liveBytes.limit, 0)
	}
	return tooManyRunsError(e.opts.MaxLiveRuns)
}

func tooManyRunsError(limit int) *runtime.Error {
	return runtime.Errorf(runtime.ReasonTooManyRuns, "the server drives %d runs, as many as it may (--max-live-runs); nothing was stored: try again, or another server", limit).
		WithLimit("max-live-runs", int64(limit), 0)
}
