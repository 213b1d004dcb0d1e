package superstep

import (
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// largeWriteBytes is from how many bytes on what a superstep writes is counted
// before its commit. What only computes is given up then, if there is no memory for
// it.
const largeWriteBytes = 256 << 10

// setHeldBytes notes how much the loop holds. It is for the goroutine of the loop.
func (l *Loop) setHeldBytes(n int64) {
	if n != l.heldBytes {
		l.thread.Memory.AddBytes(n - l.heldBytes)
		l.heldBytes = n
	}
}

// releaseBytes notes that the loop holds nothing any more.
func (l *Loop) releaseBytes() {
	l.setHeldBytes(0)
	l.clearMemos()
}

// measureBytes is how many bytes the loop holds between two supersteps.
func (l *Loop) measureBytes() int64 {
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
func (l *Loop) advanceTo(next *Loop) {
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
func (l *Loop) shouldYield(steps int) bool {
	return steps > 0 && l.mayYield() && l.thread.Memory.RequestYield()
}

// mayYield reports whether nothing is lost when the run goes on later. It is
// nothing but the loop that is under way.
func (l *Loop) mayYield() bool {
	return (l.level.isRoot || l.level.isStoppable && l.level.isOnlyTask) && l.level.replay == nil && !l.Graph().HasUntracked()
}

// shouldDiscard reports whether the run ends here for now although a superstep was
// run: all of it was computed, no reader has seen it, and there is no memory for
// what it writes. A run that was let in for that superstep keeps what it has
// computed.
func (w *superstep) shouldDiscard(steps int) bool {
	l := w.loop
	if w.writtenBytes < largeWriteBytes || w.hasRecords || len(w.cached) > 0 || !l.mayYield() {
		return false
	}
	for i := range w.unstored {
		n := w.unstored[i].task.Node
		if n.Kind != graph.KindExpr || len(pregel.CodeBranches(n)) > 0 || !w.unstored[i].isFinished() {
			return false
		}
	}
	return l.thread.Memory.RequestDiscard(steps == 0)
}
