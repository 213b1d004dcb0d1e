package capacity

import (
	"math"
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

	live       byteCount // all live runs
	continuing byteCount // the live runs that are not being evicted
}

func newByteCounts(limit int64, slots int) byteCounts {
	return byteCounts{limit: limit, admitLimit: limit - limit/8, share: max(limit/int64(slots), runtime.MinShare)}
}

// isExceeded reports whether the runs that continue hold too much. Those have a count of
// their own: a difference of two counts is too small for a moment while a run changes
// both, and a run that asks in that moment would continue beyond the limit.
func (b *byteCounts) isExceeded() bool { return b.continuing.held.Load() > b.limit }

// hasRoom reports whether there is memory for a run. There always is for the only
// heavy run.
func (b *byteCounts) hasRoom(need int64) bool {
	return need < b.share || b.live.heavyRuns.Load() == 0 || b.live.held.Load()+need <= b.admitLimit
}

// replaceHeld records that the bytes of a run that continues, or of a reservation, have
// changed.
func (b *byteCounts) replaceHeld(before, now int64) {
	b.live.replaceHeld(before, now, b.share)
	b.continuing.replaceHeld(before, now, b.share)
}

// byteCount counts the bytes of some runs.
type byteCount struct {
	held      atomic.Int64
	heavyRuns atomic.Int64 // number of heavy runs
}

// replaceHeld records that the bytes of a run have changed.
func (c *byteCount) replaceHeld(before, now, share int64) {
	c.held.Add(now - before)
	switch {
	case before < share && now >= share:
		c.heavyRuns.Add(1)
	case before >= share && now < share:
		c.heavyRuns.Add(-1)
	}
}

// countedBytes are the bytes of one run in a byteCount, until they are removed.
type countedBytes struct{ held atomic.Int64 }

// addBytes adds to the bytes of the run, unless they are removed.
func (b *countedBytes) addBytes(delta int64, c *byteCount, share int64) {
	now := b.held.Add(delta)
	if delta != 0 && now >= 0 {
		c.replaceHeld(now-delta, now, share)
	}
}

// removeBytes removes the bytes of the run for good.
func (b *countedBytes) removeBytes(c *byteCount, share int64) {
	if before := b.held.Swap(math.MinInt64 / 2); before > 0 {
		c.replaceHeld(before, 0, share)
	}
}
