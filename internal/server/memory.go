package server

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"
)

// heapRatio is the part of the container's memory that Go may use. The rest is for
// memory that Go does not count, SQLite's pages and the kernel's socket buffers,
// and for allocations during a collection, which takes long on a busy machine.
const heapRatio = 0.7

// limitMemory makes Go collect garbage before the container's limit is reached: at
// heapRatio of it, or at GOMEMLIMIT.
func limitMemory(log *zap.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(heapRatio))
	switch {
	case limit < math.MaxInt64:
		log.Info("memory limit", zap.Int64("bytes", limit), zap.Error(err))
	default:
		log.Info("no memory limit: no container sets one that is known, and GOMEMLIMIT none", zap.Error(err))
	}
}

// The spare memory that a server may keep besides its allocations between two
// checks, and the interval of the checks of the heap.
const (
	maxSpareBytes     = 16 << 20
	heapCheckInterval = 2 * time.Second
)

// maxChecksWithoutGC is the number of checks without a collection after which a
// check makes a collection, if there is something to collect. Statistics of the heap are as old as
// the last collection.
const maxChecksWithoutGC = 10

// returnUnusedMemory returns memory that a peak has left behind to the machine,
// until ctx ends. Go keeps spare memory in proportion to the memory in use, which
// is much with gcPercent, and collects only every two minutes when the server is
// idle.
func returnUnusedMemory(ctx context.Context) {
	tick := time.NewTicker(heapCheckInterval)
	defer tick.Stop()
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	var known heapWatcher
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		at := func(i int) uint64 { return sample[i].Value.Uint64() }
		if known.shouldFreeMemory(heapStats{liveBytes: at(0), heldBytes: at(1) + at(2), allocatedBytes: at(3), collections: at(4)}) {
			debug.FreeOSMemory()
		}
	}
}

// heapStats are Go's statistics of its memory.
type heapStats struct {
	liveBytes      uint64 // bytes in use at the last collection
	heldBytes      uint64 // bytes taken from the machine
	allocatedBytes uint64 // bytes since the start
	collections    uint64 // since the start
}

// heapWatcher records the results of the checks of the heap.
type heapWatcher struct {
	lastStats     heapStats
	statsAtGC     heapStats // when the last collection was first seen
	checksSinceGC int       // since then
}

// shouldFreeMemory reports whether memory should be returned to the machine: more
// of it is spare than was allocated since the last check, so that a busy server
// keeps the memory that it will use next.
func (h *heapWatcher) shouldFreeMemory(now heapStats) bool {
	used := now.allocatedBytes - h.lastStats.allocatedBytes
	if h.checksSinceGC++; now.collections != h.lastStats.collections {
		h.checksSinceGC, h.statsAtGC = 0, now
	}
	h.lastStats = now
	if now.heldBytes > now.liveBytes+used+maxSpareBytes {
		return true
	}
	return h.checksSinceGC >= maxChecksWithoutGC && now.allocatedBytes-h.statsAtGC.allocatedBytes > maxSpareBytes
}
