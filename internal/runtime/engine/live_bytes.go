package engine

import (
	"math"
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/runtime/scheduler"
)

// What the live runs of a server hold in memory is counted: the states of their
// graphs and subgraphs, and what the tasks under way have written and recorded.
// Beyond Options.MaxLiveBytes a run ends here between two supersteps, as in a
// drain, and waits in the memory queue until there is memory for it again.

// liveBytes counts what live runs hold. A run is heavy when it holds at least its
// share, the limit divided by the slots. Others are neither refused nor evicted:
// all of them together hold less than the limit.
type liveBytes struct {
	limit      int64
	admitLimit int64 // up to which heavy runs are let in; below the limit, so that they can grow
	share      int64

	heldBytes     atomic.Int64
	evictingBytes atomic.Int64 // part of held: what runs hold that are ending here
	heavyRuns     atomic.Int64 // how many runs are
	reportedBytes int64        // the last value of the observer; owned by the scheduler
}

func newLiveBytes(limit int64, places int) liveBytes {
	return liveBytes{limit: limit, admitLimit: limit - limit/8, share: max(limit/int64(places), runtime.MinShare)}
}

// largeWriteBytes is from how many bytes on what a superstep writes is counted
// before its commit. What only computes is given up then, if there is no memory for
// it.
const largeWriteBytes = 256 << 10

// isExceeded reports whether the runs that go on hold too much.
func (b *liveBytes) isExceeded() bool { return b.heldBytes.Load()-b.evictingBytes.Load() > b.limit }

// hasRoom reports whether there is memory for a run. A heavy run that is the only
// one always has memory.
func (b *liveBytes) hasRoom(need int64) bool {
	return need < b.share || b.heavyRuns.Load() == 0 || b.heldBytes.Load()+need <= b.admitLimit
}

// addHeldBytes notes that a run holds more, or less.
func (s *session) addHeldBytes(delta int64) {
	now := s.heldBytes.Add(delta)
	if delta == 0 || now < 0 { // the session is over
		return
	}
	s.engine.liveBytes.updateHeld(now-delta, now)
}

// releaseBytes notes that nothing of the run is held any more.
func (s *session) releaseBytes() {
	if before := s.heldBytes.Swap(math.MinInt64 / 2); before > 0 {
		s.engine.liveBytes.updateHeld(before, 0)
	}
}

// updateHeld notes that what a run holds has changed.
func (b *liveBytes) updateHeld(before, now int64) {
	b.heldBytes.Add(now - before)
	switch {
	case before < b.share && now >= b.share:
		b.heavyRuns.Add(1)
	case before >= b.share && now < b.share:
		b.heavyRuns.Add(-1)
	}
}

// setHeldBytes notes how much the loop holds. It is for the goroutine of the loop.
func (l *loop) setHeldBytes(n int64) {
	if n != l.heldBytes {
		l.session.addHeldBytes(n - l.heldBytes)
		l.heldBytes = n
	}
}

// releaseBytes notes that the loop holds nothing any more.
func (l *loop) releaseBytes() {
	l.setHeldBytes(0)
	l.clearMemos()
}

// measureBytes is how many bytes the loop holds between two supersteps.
func (l *loop) measureBytes() int64 {
	n := l.state.MemoryBytes()
	if l.level.isRoot {
		r := &l.run.Request
		n += int64(len(r.Input) + len(r.Context) + len(r.Update))
	}
	for _, t := range l.pending.tasks {
		n += pregel.WriteBytes(t.Writes)
	}
	for _, memos := range l.pending.memos {
		for i := range memos {
			n += MemoBytes(&memos[i])
		}
	}
	return n
}

// advanceTo takes over where another loop has come to.
func (l *loop) advanceTo(next *loop) {
	l.state, l.tasks = next.state, next.tasks
	l.setHeldBytes(l.heldBytes + next.heldBytes)
	next.setHeldBytes(0)
}

// countHeldWrites counts what the tasks of the superstep have written so far, where that is much.
func (w *superstep) countHeldWrites() {
	if w.writtenBytes-w.countedBytes >= largeWriteBytes {
		w.loop.setHeldBytes(w.loop.heldBytes + w.writtenBytes - w.countedBytes)
		w.countedBytes = w.writtenBytes
	}
}

// shouldYield reports whether the run ends here for now: the live runs hold too
// much, or its time share is over and others wait. Between two times that it is
// taken up it comes further, so steps counts its supersteps since.
func (l *loop) shouldYield(steps int) bool {
	s := l.session
	exceeded := s.engine.liveBytes.isExceeded()
	if !exceeded && s.engine.memoryQueue.Len() == 0 || steps == 0 || !l.mayYield() {
		return false
	}
	return s.engine.evictRun(s, !exceeded)
}

// mayYield reports whether nothing is lost when the run goes on later. It is
// nothing but the loop that is under way.
func (l *loop) mayYield() bool {
	return (l.level.isRoot || l.level.isStoppable && l.level.isOnlyTask) && l.level.replay == nil && !l.graph().HasUntracked()
}

// shouldDiscard reports whether the run ends here for now although a superstep was
// run: all of it was computed, no reader has seen it, and there is no memory for
// what it writes. A run that was let in for that superstep keeps what it has
// computed.
func (l *loop) shouldDiscard(w *superstep, steps int) bool {
	s := l.session
	if w.writtenBytes < largeWriteBytes || !s.engine.liveBytes.isExceeded() || w.hasRecords || len(w.cached) > 0 || steps == 0 && s.mayExceedOnce || !l.mayYield() {
		return false
	}
	for i := range w.unstored {
		n := w.unstored[i].task.Node
		if n.Kind != graph.KindExpr || len(pregel.CodeBranches(n)) > 0 || !w.unstored[i].isFinished() {
			return false
		}
	}
	return s.engine.evictRun(s, false)
}

// evictRun decides that the run of a session ends here for now. The last heavy run
// goes on, unless others wait and its time share is over.
func (e *Engine) evictRun(s *session, turns bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := &e.liveBytes
	holds := s.heldBytes.Load()
	switch {
	case s.evictedBytes > 0:
		return true
	case e.isDrained, holds < b.share:
		return false
	case e.memoryQueue.Len() > 0 && e.uptime()-s.admittedAt >= scheduler.HeavyTurn:
	case turns, !b.isExceeded(), b.heavyRuns.Load()-e.evictedCount <= 1:
		return false
	}
	s.evictedBytes = holds
	e.evictedCount++
	b.evictingBytes.Add(holds)
	return true
}

func (e *Engine) isEvicted(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.evictedBytes > 0
}

// endEviction ends what dismiss began, when the session is over. The caller holds mu.
func (e *Engine) endEviction(s *session) {
	if s.evictedBytes == 0 {
		return
	}
	e.evictedCount--
	e.liveBytes.evictingBytes.Add(-s.evictedBytes)
	if s.isRequeued {
		e.memoryQueue.EnqueueWaiter(scheduler.MemoryWaiter{Thread: s.thread, NeedBytes: s.evictedBytes, PruneMark: s.pruneMark, QueuedAt: e.uptime()})
	}
}

// reportLiveBytes tells the observer how much live runs hold.
func (e *Engine) reportLiveBytes() {
	if n := e.liveBytes.heldBytes.Load(); n != e.liveBytes.reportedBytes {
		e.liveBytes.reportedBytes = n
		e.observer.LiveBytes(n)
	}
}
