package main

import (
	"context"
	"slices"

	"github.com/graphd-dev/graphd/bench/limit"
	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// part is something to measure on a store in every round.
type part struct {
	name, about string
	cells       func(*round) [][]measure.Cell
}

func parts() []part {
	return []part{
		{"W1", "a chain of ten nodes that add one, a commit for each", chain},
		{"W2", "work, a question to a person, work with the answer", question},
		{"W3", "one node sends 100 tasks, another joins them", fan},
		{"W5", "1,000 threads at once, each asks and is answered", crowd},
	}
}

// round is one turn of one store.
type round struct {
	*bench
	*stand.Stand
	names *workload.Names
}

// key names what is measured here.
func (r *round) key(name string, clients int) measure.Key {
	return measure.Key{Workload: name, Store: r.Setting, Clients: clients}
}

// clients are the numbers that this store is tried with: the middle of the
// road is tried with all of them.
func (r *round) clients(all ...int) []int {
	if r.size == full || r.Setting == stand.RedisEverysec {
		return all
	}
	return slices.DeleteFunc(all, func(n int) bool { return n > 64 })
}

// both measures graphd and the limit in turn.
func (r *round) both(name string, clients int, take func(context.Context, workload.Target) (workload.Sample, error)) []measure.Cell {
	at := func(t workload.Target) func(context.Context) (workload.Sample, error) {
		return func(ctx context.Context) (workload.Sample, error) { return take(ctx, t) }
	}
	key := r.key(name, clients)
	return []measure.Cell{{Key: key.As(graphd), Take: at(r.Graphd)}, {Key: key.As(theLimit), Take: at(r.Limit)}}
}

// load is both for a workload that clients repeat for a while.
func (r *round) load(name string, clients, counts int, one func(workload.Target) workload.One) []measure.Cell {
	return r.both(name, clients, func(ctx context.Context, t workload.Target) (workload.Sample, error) {
		return workload.Load(ctx, clients, r.long, counts, one(t))
	})
}

func chain(r *round) [][]measure.Cell {
	var groups [][]measure.Cell
	for _, clients := range r.clients(1, 64, 256) {
		group := r.load("W1", clients, workload.ChainLength, workload.W1)
		if clients <= 64 && r.Setting != stand.Memory {
			group = append(group, r.commits(clients))
		}
		groups = append(groups, group)
	}
	// Against the bare commits one by one, next to the many clients.
	if r.Setting == stand.SQLite || r.Setting == stand.RedisAlways {
		one := r.commits(1)
		one.Key.Workload = oneByOne
		groups[1] = append(groups[1], one)
	}
	return groups
}

// bare are commits without gRPC.
const (
	bare     = "bare commits"
	oneByOne = "bare commits, one by one"
)

// commits counts as many supersteps as chains with these commits would have.
func (r *round) commits(lanes int) measure.Cell {
	script := r.calls[workload.Chain]
	return measure.Cell{Key: r.key("W1", lanes).As(bare), Take: func(ctx context.Context) (workload.Sample, error) {
		rate, err := limit.Rate(ctx, r.Limit.Client, limit.Commits{
			Lanes: lanes, PerThread: script.Commits, Bytes: script.Bytes, For: r.long,
		})
		return workload.Sample{Rate: rate * workload.ChainLength / float64(script.Commits)}, err
	}}
}

func question(r *round) [][]measure.Cell {
	var groups [][]measure.Cell
	for _, clients := range r.clients(1, 64, 256) {
		groups = append(groups, r.load("W2", clients, 1, func(t workload.Target) workload.One { return workload.W2(t, r.names) }))
	}
	return groups
}

func fan(r *round) [][]measure.Cell {
	var groups [][]measure.Cell
	for _, clients := range r.clients(1, 64, 256) {
		groups = append(groups, r.load("W3", clients, 1, workload.W3))
	}
	return groups
}

func crowd(r *round) [][]measure.Cell {
	threads := 1000
	if r.size == smoke {
		threads = 20
	}
	return [][]measure.Cell{r.both("W5", threads, func(ctx context.Context, t workload.Target) (workload.Sample, error) {
		return workload.Repeat(ctx, threads, 1, 1, workload.W2(t, r.names))
	})}
}
