package capacity

import (
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// What the live runs of a server hold in memory is counted: the states of their
// graphs and subgraphs, and what the tasks under way have written and recorded.
// Beyond Options.MaxBytes a run ends here between two supersteps, as in a drain, and
// waits in the memory queue until there is memory for it again.

// byteCounts counts what live runs hold. A run is heavy when it holds at least its
// share, the limit divided by the slots. Others are neither refused nor evicted:
// all of them together hold less than the limit.
type byteCounts struct {
	limit      int64
	admitLimit int64 // up to which heavy runs are let in; below the limit, so that they can grow
	share      int64

	held      atomic.Int64
	evicting  atomic.Int64 // part of held: what runs hold that are ending here
	heavyRuns atomic.Int64 // how many runs are
}

func newByteCounts(limit int64, slots int) byteCounts {
	return byteCounts{limit: limit, admitLimit: limit - limit/8, share: max(limit/int64(slots), runtime.MinShare)}
}

// isExceeded reports whether the runs that go on hold too much.
func (b *byteCounts) isExceeded() bool { return b.held.Load()-b.evicting.Load() > b.limit }

// hasRoom reports whether there is memory for a run. A heavy run that is the only
// one always has memory.
func (b *byteCounts) hasRoom(need int64) bool {
	return need < b.share || b.heavyRuns.Load() == 0 || b.held.Load()+need <= b.admitLimit
}

// replaceHeld notes that what a run holds has changed.
func (b *byteCounts) replaceHeld(before, now int64) {
	b.held.Add(now - before)
	switch {
	case before < b.share && now >= b.share:
		b.heavyRuns.Add(1)
	case before >= b.share && now < b.share:
		b.heavyRuns.Add(-1)
	}
}
