package main

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/workload"
)

// pairs are questions and their answers, by so many clients at once.
const (
	pairs       = "question and answer"
	pairClients = 64
)

// turnsOfPairs is how often in a round each company is there, for a part of the time. A turn must be
// longer than the pause of those that connect again and again.
const turnsOfPairs = 2

// company is who watches while questions are asked and answered.
type company struct {
	who      string
	watchers int
	connects bool    // again and again
	goal     float64 // the least ratio to the rate without watchers
	before   string  // what an earlier build did on Redis
}

const nobody = "no watcher"

func companies() []company {
	return []company{
		{who: nobody, before: "798"},
		{who: "20 watchers", watchers: 20, goal: 0.85, before: "294"},
		{who: "100 watchers", watchers: 100, goal: 0.85},
		{who: "100 watchers that connect again and again", watchers: 100, connects: true, goal: 0.85, before: "3"},
	}
}

// Further figures of the watchers, per second.
const (
	changesSeen = "changes that watchers saw"
	connections = "connections of watchers"
)

func (b *inbox) pairsKey(who string) measure.Key {
	return measure.Key{Workload: pairs, Store: b.setting, Clients: pairClients, Who: who}
}

// pairCells are questions and answers in each company.
func (b *inbox) pairCells(o options, names *workload.Names, series measure.Series) []measure.Cell {
	var cells []measure.Cell
	for _, c := range companies() {
		cells = append(cells, measure.Cell{Key: b.pairsKey(c.who), Take: func(ctx context.Context) (workload.Sample, error) {
			return b.answerBeside(ctx, o, c, names, series)
		}})
	}
	return cells
}

func (b *inbox) answerBeside(ctx context.Context, o options, c company, names *workload.Names, series measure.Series) (workload.Sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var pause time.Duration
	if c.connects {
		pause = o.pause
	}
	all := b.startWatchers(ctx, c.watchers, pause, fail)
	if err := context.Cause(ctx); err != nil {
		return workload.Sample{}, err
	}
	changes, connected, began := all.changes.Load(), all.connected.Load(), time.Now()
	s, err := workload.Load(ctx, pairClients, o.long/turnsOfPairs, 1, workload.W2(b.many, names))
	took := time.Since(began).Seconds()
	if c.watchers > 0 && err == nil {
		err = all.awaitChange(ctx, changes)
	}
	changes, connected = all.changes.Load()-changes, all.connected.Load()-connected
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	fail(nil)
	all.ended.Wait()
	if c.watchers == 0 || err != nil {
		return s, err
	}
	key := b.pairsKey(c.who)
	key.Workload = changesSeen
	series.Add(key, workload.Sample{Rate: float64(changes) / took})
	if c.connects {
		key.Workload = connections
		series.Add(key, workload.Sample{Rate: float64(connected) / took})
	}
	return s, nil
}
