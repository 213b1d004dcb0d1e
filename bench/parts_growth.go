package main

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Measurements of growth, which must not make a step dearer.
const (
	early, middle, late   = "W4 step 10", "W4 step 250", "W4 step 500"
	firstSteps, lastSteps = "history, first steps", "history, last steps"
	small, large          = "steps, state of 1 KB", "steps, state of 1 MB"
)

// listSteps is how often W4 appends.
const listSteps = 500

// list grows a list by 1 KB in each of 500 steps.
func list(r *round) [][]measure.Cell {
	if r.Setting == stand.RedisOff || r.Setting == stand.RedisAlways {
		return nil
	}
	return [][]measure.Cell{{r.steps(early, "list", workload.List(listSteps), listSteps, func(took []time.Duration) workload.Sample {
		r.series.Add(r.key(middle, 1).As(graphd), workload.Around(took, 240, 260))
		r.series.Add(r.key(late, 1).As(graphd), workload.Around(took, listSteps-20, listSteps))
		return workload.Around(took, 2, 22)
	})}}
}

// history is one thread of very many checkpoints.
func history(r *round) [][]measure.Cell {
	if r.Setting != stand.RedisEverysec && (r.size != full || r.Setting != stand.SQLite) {
		return nil
	}
	steps := map[string]int{smoke: 200, normal: 10_000, full: 10_000}[r.size]
	window := min(steps/4, 500)
	return [][]measure.Cell{{r.steps(firstSteps, "loop", workload.Loop(steps, 0), steps, func(took []time.Duration) workload.Sample {
		r.series.Add(r.key(lastSteps, 1).As(graphd), workload.Around(took, steps-window, steps))
		return workload.Around(took, 20, 20+window)
	})}}
}

// ballast is a large state of which little changes.
func ballast(r *round) [][]measure.Cell {
	if r.Setting == stand.RedisOff || r.Setting == stand.RedisAlways {
		return nil
	}
	steps := map[string]int{smoke: 10, normal: 100, full: 300}[r.size]
	all := func(took []time.Duration) workload.Sample { return workload.Around(took, 2, steps) }
	return [][]measure.Cell{{
		r.steps(small, "loop", workload.Loop(steps, 0), steps, all),
		r.steps(large, "loop", workload.Loop(steps, 1_000_000), steps, all),
	}}
}

func (r *round) steps(name, graph, input string, steps int, look func([]time.Duration) workload.Sample) measure.Cell {
	return measure.Cell{Key: r.key(name, 1).As(graphd), Take: func(ctx context.Context) (workload.Sample, error) {
		took, err := workload.Steps(ctx, r.Graphd, graph, r.names.Next(), input, steps)
		if err != nil {
			return workload.Sample{}, err
		}
		return look(took), nil
	}}
}
