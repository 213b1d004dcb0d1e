package capacity

import (
	"sync/atomic"

	"github.com/graphd-dev/graphd/internal/runtime"
)

// The server counts the memory of its live runs: the states of their graphs and
// subgraphs, and the writes and records of running tasks. Above Options.MaxBytes a
// run stops here between two supersteps, as in a drain, and waits in the memory
// queue until there is memory for it again.

// byteCounts counts the bytes of live runs. A run is heavy when it holds at least
// its share, the limit divided by the slots. Light runs are neither refused nor
// evicted: all of them together hold less than the limit.
type byteCounts struct {
	limit      int64
	admitLimit int64 // up to which heavy runs are admitted; below the limit, so that they can grow
	share      int64

	held      atomic.Int64
	evicting  atomic.Int64 // part of held: the bytes of runs that are being evicted
	heavyRuns atomic.Int64 // number of heavy runs
}

func newByteCounts(limit int64, slots int) byteCounts {
	return byteCounts{limit: limit, admitLimit: limit - limit/8, share: max(limit/int64(slots), runtime.MinShare)}
}

// isExceeded reports whether the runs that continue hold too much.
func (b *byteCounts) isExceeded() bool { return b.held.Load()-b.evicting.Load() > b.limit }

// hasRoom reports whether there is memory for a run. There always is for the only
// heavy run.
func (b *byteCounts) hasRoom(need int64) bool {
	return need < b.share || b.heavyRuns.Load() == 0 || b.held.Load()+need <= b.admitLimit
}

// replaceHeld records that the bytes of a run have changed.
func (b *byteCounts) replaceHeld(before, now int64) {
	b.held.Add(now - before)
	switch {
	case before < b.share && now >= b.share:
		b.heavyRuns.Add(1)
	case before >= b.share && now < b.share:
		b.heavyRuns.Add(-1)
	}
}
