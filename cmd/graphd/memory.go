package main

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"
)

// heapShare is the part of the container's memory that Go may use. The rest is
// for what Go does not count, SQLite's pages and the kernel's socket buffers,
// and for what comes in during a collection.
const heapShare = 0.8

// limitMemory has Go collect garbage before the container's limit is reached:
// at heapShare of it, or where GOMEMLIMIT says.
func limitMemory(log *zap.Logger) {
	limit, err := memlimit.Set(memlimit.WithRatio(heapShare))
	switch {
	case limit < math.MaxInt64:
		log.Info("memory limit", zap.Int64("bytes", limit), zap.Error(err))
	default:
		log.Info("no memory limit: no container sets one that is known, and GOMEMLIMIT none", zap.Error(err))
	}
}

// What a server may hold back besides what it uses up between two looks, and
// how often that is looked at.
const (
	spareMemory = 16 << 20
	lookAtSpare = 2 * time.Second
)

// longUncollected is after how many looks without a collection one is made, if
// there is something to collect: what is known of the heap is as old as that.
const longUncollected = 10

// returnMemory gives memory that a peak has left behind back to the machine
// until ctx ends. Go keeps it in proportion to what is in use, and with
// heapGrowth, that is much; it collects every two minutes when little happens.
func returnMemory(ctx context.Context) {
	tick := time.NewTicker(lookAtSpare)
	defer tick.Stop()
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	var known spare
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		at := func(i int) uint64 { return sample[i].Value.Uint64() }
		if known.look(heap{live: at(0), held: at(1) + at(2), allocated: at(3), collections: at(4)}) {
			debug.FreeOSMemory()
		}
	}
}

// heap is what Go says of its memory.
type heap struct {
	live        uint64 // bytes in use at the last collection
	held        uint64 // bytes taken from the machine
	allocated   uint64 // bytes since the start
	collections uint64 // since the start
}

// spare is what the looks at the heap have shown.
type spare struct {
	last      heap
	collected heap // as it was when the last collection was first seen
	looks     int  // since then
}

// look reports whether memory is to be given back: more of it is spare than was
// used up since the last look, so that a busy server keeps what it will use next.
func (s *spare) look(now heap) bool {
	used := now.allocated - s.last.allocated
	if s.looks++; now.collections != s.last.collections {
		s.looks, s.collected = 0, now
	}
	s.last = now
	if now.held > now.live+used+spareMemory {
		return true
	}
	return s.looks >= longUncollected && now.allocated-s.collected.allocated > spareMemory
}
