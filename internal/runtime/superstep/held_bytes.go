package superstep

import (
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// largeWriteBytes is from how many bytes on the writes of a superstep are counted before
// its commit. A superstep without effects is given up then, if there is no memory for
// it.
const largeWriteBytes = 256 << 10

// setHeldBytes notes how much the loop holds. It is for the goroutine of the loop.
func (fr *frame) setHeldBytes(n int64) {
	if n != fr.heldBytes {
		fr.thread.Memory.AddBytes(n - fr.heldBytes)
		fr.heldBytes = n
	}
}

// releaseBytes notes that the loop holds nothing any more.
func (l *graphLoop) releaseBytes() {
	l.setHeldBytes(0)
	l.clearMemos()
}

// measureBytes returns how many bytes the loop holds between two supersteps.
func (fr *frame) measureBytes() int64 {
	n := fr.state.MemoryBytes()
	if fr.level.isRoot {
		r := &fr.run.Request
		n += int64(len(r.Input) + len(r.Context) + len(r.Update))
	}
	for _, t := range fr.pending.tasks {
		n += pregel.WriteBytes(t.Writes)
	}
	for _, memos := range fr.pending.memos {
		for i := range memos {
			n += MemoBytes(&memos[i])
		}
	}
	return n
}

// advanceTo takes over where supersteps inside a change have come to.
func (l *graphLoop) advanceTo(next *frame) {
	l.state, l.tasks = next.state, next.tasks
	l.digests.dropReplaced(l.state)
	l.setHeldBytes(l.heldBytes + next.heldBytes)
	next.setHeldBytes(0)
}

// countHeldWrites counts the writes of the superstep so far, where they are large.
func (s *superstep) countHeldWrites() {
	if s.writtenBytes-s.countedBytes >= largeWriteBytes {
		s.frame.setHeldBytes(s.frame.heldBytes + s.writtenBytes - s.countedBytes)
		s.countedBytes = s.writtenBytes
	}
}

// shouldYield reports whether the run ends here for now: the live runs hold too
// much, or its time share is over and others wait. Between two times that it is
// taken up it comes further, so steps counts its supersteps since.
func (l *graphLoop) shouldYield(steps int) bool {
	return steps > 0 && l.mayYield() && l.thread.Memory.RequestYield()
}

// mayYield reports whether nothing is lost when the run goes on later. It is
// nothing but the loop that is under way.
func (fr *frame) mayYield() bool {
	return (fr.level.isRoot || fr.level.isStoppable && fr.level.isOnlyTask) && fr.level.replay == nil && !fr.Graph().HasUntracked()
}

// shouldDiscard reports whether the run ends here for now although a superstep was run:
// all of it was computed, no reader has seen it, and there is no memory for its writes.
// A run that was let in for that superstep keeps its results.
func (s *superstep) shouldDiscard(steps int) bool {
	fr := s.frame
	if s.writtenBytes < largeWriteBytes || s.hasRecords || len(s.cached) > 0 || !fr.mayYield() {
		return false
	}
	for i := range s.unstored {
		n := s.unstored[i].task.Node
		if n.Kind != graph.KindExpr || len(pregel.CodeBranches(n)) > 0 || !s.unstored[i].isFinished() {
			return false
		}
	}
	return fr.thread.Memory.RequestDiscard(steps == 0)
}
