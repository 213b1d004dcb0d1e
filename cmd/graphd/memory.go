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

// limitMemory has Go collect garbage before the container's limit is reached:
// at 90 % of it, or where GOMEMLIMIT says.
func limitMemory(log *zap.Logger) {
	limit, err := memlimit.Set()
	switch {
	case err != nil:
		log.Debug("the memory limit of the container is not known; GOMEMLIMIT sets one", zap.Error(err))
	case limit < math.MaxInt64:
		log.Info("memory limit", zap.Int64("bytes", limit))
	}
}

// What a server may hold back for later, and how often that is looked at.
const (
	spareMemory = 64 << 20
	lookAtSpare = 5 * time.Second
)

// returnMemory gives memory that a peak has left behind back to the machine
// until ctx ends. Go keeps it in proportion to what is in use, and with
// heapGrowth, that is much; it collects every two minutes when little happens.
func returnMemory(ctx context.Context) {
	tick := time.NewTicker(lookAtSpare)
	defer tick.Stop()
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		live, held := sample[0].Value.Uint64(), sample[1].Value.Uint64()+sample[2].Value.Uint64()
		if held > 3*live+spareMemory {
			debug.FreeOSMemory()
		}
	}
}
