package main

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Who is measured.
const (
	graphd   = "graphd"
	theLimit = "limit"
)

// operation is a call that is timed, next to the least that the store needs for it.
type operation struct {
	name  string
	call  workload.One
	limit workload.One // nil = none
	// What is wanted of p50 and p99 in milliseconds, 0 = nothing.
	goal50, goal99 float64
	// goalOver is by how many milliseconds the p50 may be above that of the limit, 0 = nothing is
	// wanted.
	goalOver float64
	// goalRatio is how many times as long as the limit the p50 may be, 0 = nothing is wanted.
	goalRatio float64
	// before is what an earlier build needed, "" = not known.
	before string
}

// turnsOfARatio is how often in a round an operation whose ratio has a goal is timed beside its
// limit: a machine changes its pace by more than the goal from one turn to the next.
const turnsOfARatio = 10

func (op operation) countTurns() int {
	if op.goalRatio > 0 {
		return turnsOfARatio
	}
	return 1
}

// takeTurns has the cells of a group taken so many times, in one order and then in the other.
func takeTurns(group []measure.Cell, turns int) (groups [][]measure.Cell) {
	for range turns {
		groups = append(groups, group)
		group = slices.Clone(group)
		slices.Reverse(group)
	}
	return groups
}

func (b *inbox) key(name, who string) measure.Key {
	return measure.Key{Workload: name, Store: b.setting, Clients: 1, Who: who}
}

// cells are the operations as measurements, each beside its limit.
func (b *inbox) cells(operations []operation, o options) [][]measure.Cell {
	var groups [][]measure.Cell
	for _, op := range operations {
		group := []measure.Cell{b.cell(op.name, graphd, op.call, o)}
		if op.limit != nil {
			group = append(group, b.cell(op.name, theLimit, op.limit, o))
		}
		groups = append(groups, takeTurns(group, op.countTurns())...)
	}
	return groups
}

func (b *inbox) cell(name, who string, one workload.One, o options) measure.Cell {
	return measure.Cell{Key: b.key(name, who), Take: func(ctx context.Context) (workload.Sample, error) {
		return workload.RepeatUpTo(ctx, o.repeat, mostOfACell, one)
	}}
}
