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
		{"W1", "a chain of ten nodes that add one", chain},
		{"W2", "work, a question to a person, work with the answer", question},
		{"W3", "one node sends 100 tasks, another joins them", fan},
		{"W4", "a list grows by 1 KB in each of 500 steps", list},
		{"W5", "1,000 threads at once, each asks and is answered", crowd},
		{"state", "a state of 1 MB of which 1 KB changes", ballast},
		{"watch", "1,000 clients watch one run", watch},
		{"parked", "10,000 threads wait for an answer (full: 100,000)", waiting},
		{"remote", "nodes in processes in Go and Python", far},
		{"start", "start-up time and size of the binary", start},
		{"history", "a thread of 10,000 checkpoints", history},
		{"security", "W1 and W2 with TLS, client certificates and tokens, beside plain text", security},
		{"noise", "W1 and W2 of a tenant, beside one that calls at 100 times its limit", noise},
	}
}

// round is one turn of one store.
type round struct {
	*bench
	*stand.Stand
	names *workload.Names
	// context outlives the calls of cells. after ends the work of cells.
	context context.Context //nolint:containedctx // of this round
	after   []func()
}

// key identifies a measurement of this round.
func (r *round) key(name string, clients int) measure.Key {
	return measure.Key{Workload: name, Store: r.Setting, Clients: clients}
}

// wide tells that a store is tried with everything: in the normal size only the
// middle of the road is.
func (r *round) wide() bool { return r.size != normal || r.Setting == stand.RedisEverysec }

// clients are the numbers that this store is tried with.
func (r *round) clients(all ...int) []int {
	most := 256
	if r.size == smoke || !r.wide() {
		most = 64
	}
	return slices.DeleteFunc(all, func(n int) bool { return n > most })
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
			group = append(group, r.commits(clients), r.apart(clients))
		}
		group = append(group, r.besides("W1", clients, 0, workload.ChainLength)...)
		groups = append(groups, group)
	}
	// Compares with single bare commits, next to the many clients.
	if r.Setting == stand.SQLite || r.Setting == stand.RedisAlways {
		one := r.commits(1)
		one.Key.Workload = oneByOne
		groups[1] = append(groups[1], one)
	}
	return groups
}

// each is W1 with a graph whose supersteps have a commit each.
const each = "W1, a commit each"

func (r *round) apart(clients int) measure.Cell {
	return measure.Cell{Key: r.key(each, clients).As(graphd), Take: func(ctx context.Context) (workload.Sample, error) {
		return workload.Load(ctx, clients, r.long, workload.ChainLength, workload.ChainOf(r.Graphd, "each"))
	}}
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
		if clients > 1 && !r.wide() {
			break
		}
		group := r.load("W2", clients, 1, func(t workload.Target) workload.One { return workload.W2(t, r.names) })
		groups = append(groups, append(group, r.besides("W2", clients, 0, 1)...))
	}
	return groups
}

func fan(r *round) [][]measure.Cell {
	if !r.wide() {
		return nil
	}
	var groups [][]measure.Cell
	for _, clients := range r.clients(1, 64, 256) {
		group := r.load("W3", clients, 1, workload.W3)
		if clients == 1 || r.size == full {
			group = append(group, r.besides("W3", clients, 0, 1)...)
		}
		groups = append(groups, group)
	}
	return groups
}

// crowd is how many threads run at once in W5.
func (b *bench) crowd() int { return map[string]int{smoke: 20, normal: 1000, full: 1000}[b.size] }

func crowd(r *round) [][]measure.Cell {
	if !r.wide() {
		return nil
	}
	threads := r.crowd()
	cells := r.both("W5", threads, func(ctx context.Context, t workload.Target) (workload.Sample, error) {
		return workload.Repeat(ctx, threads, 1, 1, workload.W2(t, r.names))
	})
	return [][]measure.Cell{append(cells, r.besides("W5", threads, 1, 1)...)}
}
