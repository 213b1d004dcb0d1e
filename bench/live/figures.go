package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// figures are what was measured of the runs on one store.
type figures struct {
	started, takenOver, ended time.Duration // takenOver 0 = nothing was killed
	memory, heap, stacks      float64       // bytes of a run
	goroutines                float64       // of a run
	processor                 float64       // part of a core
	commands                  float64       // of Redis a second; less than 0 = there is none
}

func (f *figures) printRow(w io.Writer, store string, count int) {
	commands, takenOver := "–", "–"
	if f.commands >= 0 {
		commands = fmt.Sprintf("%.1f", f.commands)
	}
	if f.takenOver > 0 {
		takenOver = fmt.Sprintf("%.1f", f.takenOver.Seconds())
	}
	const kilobyte = 1024
	fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t%s\t%.1f\n", store, count, f.started.Seconds(),
		f.memory/kilobyte, f.heap/kilobyte, f.stacks/kilobyte, f.goroutines, 100*f.processor, commands, takenOver, f.ended.Seconds())
}

// usage is what the server has taken.
type usage struct {
	at                   time.Time
	memory, heap, stacks float64 // bytes
	goroutines           float64
	processor            time.Duration
	commands             float64 // of Redis
}

// readUsage reads it. What the next collection frees does not count.
func (u *usage) readUsage(ctx context.Context, b *bench) error {
	var all [6]error
	u.heap, all[0] = b.server.Heap(ctx)
	u.memory, all[1] = b.server.Metric(ctx, "process_resident_memory_bytes")
	u.goroutines, all[2] = b.server.Metric(ctx, "go_goroutines")
	u.processor, all[3] = b.server.ProcessorTime(ctx)
	u.stacks, all[4] = b.server.Metric(ctx, "go_memstats_stack_inuse_bytes")
	u.at = time.Now()
	if b.redis != nil {
		var stats map[string]float64
		stats, all[5] = b.redis.Info(ctx, "stats")
		u.commands = stats["total_commands_processed"]
	}
	return errors.Join(all[:]...)
}
