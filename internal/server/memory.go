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

// heapRatio is the part of the container's memory that Go may use. The rest is
// for what Go does not count, SQLite's pages and the kernel's socket buffers,
// and for what comes in during a collection, which takes long on a busy machine.
const heapRatio = 0.7

// limitMemory has Go collect garbage before the container's limit is reached:
// at heapRatio of it, or where GOMEMLIMIT says.
func limitMemory(log *zap.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(heapRatio))
	switch {
	case limit < math.MaxInt64:
		log.Info("memory limit", zap.Int64("bytes", limit), zap.Error(err))
	default:
		log.Info("no memory limit: no container sets one that is known, and GOMEMLIMIT none", zap.Error(err))
	}
}

// What a server may hold back besides what it uses up between two checks, and how
// often the heap is checked.
const (
	maxSpareBytes     = 16 << 20
	heapCheckInterval = 2 * time.Second
)

// maxChecksWithoutGC is the number of checks without a collection after which one
// is made, if there is something to collect: what is known of the heap is as old as
// that.
const maxChecksWithoutGC = 10

// returnUnusedMemory gives memory that a peak has left behind back to the machine
// until ctx ends. Go keeps it in proportion to what is in use, and with
// heapGrowth, that is much; it collects every two minutes when little happens.
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

// heapStats is what Go says of its memory.
type heapStats struct {
	liveBytes      uint64 // bytes in use at the last collection
	heldBytes      uint64 // bytes taken from the machine
	allocatedBytes uint64 // bytes since the start
	collections    uint64 // since the start
}

// heapWatcher records what the checks of the heap have shown.
type heapWatcher struct {
	lastStats     heapStats
	statsAtGC     heapStats // as it was when the last collection was first seen
	checksSinceGC int       // since then
}

// shouldFreeMemory reports whether memory is to be given back: more of it is spare
// than was used up since the last look, so that a busy server keeps what it will
// use next.
func (s *heapWatcher) shouldFreeMemory(now heapStats) bool {
	used := now.allocatedBytes - s.lastStats.allocatedBytes
	if s.checksSinceGC++; now.collections != s.lastStats.collections {
		s.checksSinceGC, s.statsAtGC = 0, now
	}
	s.lastStats = now
	if now.heldBytes > now.liveBytes+used+maxSpareBytes {
		return true
	}
	return s.checksSinceGC >= maxChecksWithoutGC && now.allocatedBytes-s.statsAtGC.allocatedBytes > maxSpareBytes
}
