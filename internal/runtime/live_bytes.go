package runtime

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// What the live runs of a server hold in memory is counted: the states of their
// graphs and subgraphs, and what the tasks under way have written and recorded. Beyond
// Options.MaxLiveBytes a run ends here between two supersteps, as in a drain, and
// waits in line until there is room for it again.

// liveBytes counts what live runs hold. A run is heavy when it holds at least its
// share, the limit divided by the places. Others are neither refused nor put off:
// all of them together hold less than the limit.
type liveBytes struct {
	limit int64
	low   int64 // up to which heavy runs are let in; below the limit, so that they have room to grow
	share int64

	held    atomic.Int64
	leaving atomic.Int64 // part of held: what runs hold that are ending here
	heavy   atomic.Int64 // how many runs are
	told    int64        // what the observer knows; the sweeper's
}

// leastShare is what each run may hold, however many there may be.
const leastShare = 4 << 10

func newLiveBytes(limit int64, places int) liveBytes {
	return liveBytes{limit: limit, low: limit - limit/8, share: max(limit/int64(places), leastShare)}
}

// turn is how long a heavy run goes on while others wait for room.
const turn = 5 * time.Second

// muchWritten is from how many bytes on what a superstep writes is counted before its
// commit. What only computes is given up then, if there is no room for it.
const muchWritten = 256 << 10

// exceeded reports whether the runs that go on hold too much.
func (b *liveBytes) exceeded() bool { return b.held.Load()-b.leaving.Load() > b.limit }

// fits reports whether there is room for a run. A heavy one that would be the
// only one always has room.
func (b *liveBytes) fits(need int64) bool {
	return need < b.share || b.heavy.Load() == 0 || b.held.Load()+need <= b.low
}

// carry notes that a run holds more, or less.
func (s *session) carry(delta int64) {
	now := s.carried.Add(delta)
	if delta == 0 || now < 0 { // the session is over
		return
	}
	s.engine.bytes.shift(now-delta, now)
}

// unload notes that nothing of the run is held any more.
func (s *session) unload() {
	if before := s.carried.Swap(math.MinInt64 / 2); before > 0 {
		s.engine.bytes.shift(before, 0)
	}
}

// shift notes that what a run holds has changed.
func (b *liveBytes) shift(before, now int64) {
	b.held.Add(now - before)
	switch {
	case before < b.share && now >= b.share:
		b.heavy.Add(1)
	case before >= b.share && now < b.share:
		b.heavy.Add(-1)
	}
}

// hold notes how much the loop holds. It is for the goroutine of the loop.
func (l *loop) hold(n int64) {
	if n != l.holds {
		l.session.carry(n - l.holds)
		l.holds = n
	}
}

// unload notes that the loop holds nothing any more.
func (l *loop) unload() {
	l.hold(0)
	l.forgetMemos()
}

// weigh is how many bytes the loop holds between two supersteps.
func (l *loop) weigh() int64 {
	n := l.state.Bytes()
	if l.level.root {
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

// succeed takes over where another loop has come to.
func (l *loop) succeed(next *loop) {
	l.state, l.tasks = next.state, next.tasks
	l.hold(l.holds + next.holds)
	next.hold(0)
}

// gather counts what the tasks of the superstep have written so far, where that is much.
func (w *work) gather() {
	if w.bytes-w.counted >= muchWritten {
		w.loop.hold(w.loop.holds + w.bytes - w.counted)
		w.counted = w.bytes
	}
}

// yields reports whether the run ends here for now: the live runs hold too much,
// or it has had its turn and others wait. Between two times that it is taken up
// it comes further, so steps counts its supersteps since.
func (l *loop) yields(steps int) bool {
	s := l.session
	exceeded := s.engine.bytes.exceeded()
	if !exceeded && s.engine.heavyLine.waiting.Load() == 0 || steps == 0 || !l.mayYield() {
		return false
	}
	return s.engine.dismiss(s, !exceeded)
}

// mayYield reports whether nothing is lost when the run goes on later. It is
// nothing but the loop that is under way.
func (l *loop) mayYield() bool {
	return (l.level.root || l.level.stops && l.level.lone) && l.level.journey == nil && !l.graph().HasUntracked()
}

// foregoes reports whether the run ends here for now although a superstep was
// run: all of it was computed, no reader has seen it, and there is no room for what it
// writes. A run that was let in for that superstep keeps what it has computed.
func (l *loop) foregoes(w *work, steps int) bool {
	s := l.session
	if w.bytes < muchWritten || !s.engine.bytes.exceeded() || w.recorded || len(w.cached) > 0 || steps == 0 && s.promised || !l.mayYield() {
		return false
	}
	for i := range w.fresh {
		n := w.fresh[i].task.Node
		if n.Kind != graph.KindExpr || len(pregel.Routers(n)) > 0 || !w.fresh[i].finished() {
			return false
		}
	}
	return s.engine.dismiss(s, false)
}

// dismiss decides that the run of a session ends here for now. The last heavy
// run goes on, unless others wait and it has had its turn.
func (e *Engine) dismiss(s *session, turns bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := &e.bytes
	holds := s.carried.Load()
	switch {
	case s.leaves > 0:
		return true
	case e.drained, holds < b.share:
		return false
	case e.heavyLine.len() > 0 && e.uptime()-s.since >= turn:
	case turns, !b.exceeded(), b.heavy.Load()-e.dismissed <= 1:
		return false
	}
	s.leaves = holds
	e.dismissed++
	b.leaving.Add(holds)
	return true
}

func (e *Engine) isDismissed(s *session) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.leaves > 0
}

// farewell ends what dismiss began, when the session is over. The caller holds mu.
func (e *Engine) farewell(s *session) {
	if s.leaves == 0 {
		return
	}
	e.dismissed--
	e.bytes.leaving.Add(-s.leaves)
	if s.returns {
		e.heavyLine.join(heavyThread{thread: s.thread, need: s.leaves, past: s.past, since: e.uptime()})
	}
}

// tellBytes tells the observer how much live runs hold.
func (e *Engine) tellBytes() {
	if n := e.bytes.held.Load(); n != e.bytes.told {
		e.bytes.told = n
		e.observer.LiveBytes(n)
	}
}
