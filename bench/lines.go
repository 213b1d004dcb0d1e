package main

import (
	"fmt"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/peer"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// lines are the goals, each a ratio of figures of the same round, or an amount.
func lines(b *bench) []report.Line {
	var all []report.Line
	for _, part := range []func(*bench) []report.Line{againstLimits, againstPeers, inOneProcess, growth, securityCosts, neighbours} {
		all = append(all, part(b)...)
	}
	return all
}

// at is a key of graphd on a store.
func at(store, name string, clients int) measure.Key {
	return measure.Key{Workload: name, Store: store, Clients: clients, Who: graphd}
}

// atLeast is a line about the ratio of two rates.
func (b *bench) atLeast(title, against string, of, to measure.Key, bound float64) report.Line {
	l := report.Line{Title: title, Against: against, Ratio: b.series.Ratio(of, to), Bound: bound}
	switch {
	case len(b.series[of]) == 0:
		l.Absent = "not measured"
	case l.Ratio.Rounds == 0:
		l.Absent = "absent, see below"
	}
	return l
}

// atMost is a line about how much slower something is than it was.
func (b *bench) atMost(title, against string, of, to measure.Key, bound float64) report.Line {
	l := b.atLeast(title, against, to, of, bound)
	l.AtMost = true
	return l
}

// amount is a line about a figure alone.
func (b *bench) amount(title, against, unit string, of measure.Key, bound float64) report.Line {
	l := report.Line{Title: title, Against: against, Unit: unit, Ratio: b.series.Rate(of), Bound: bound, AtMost: true}
	if l.Ratio.Rounds == 0 {
		l.Absent = "not measured"
	}
	return l
}

func againstLimits(b *bench) []report.Line {
	w1, many := at(stand.RedisEverysec, "W1", 1), at(stand.RedisEverysec, "W1", 64)
	always, sqlite := at(stand.RedisAlways, "W1", 64), at(stand.SQLite, "W1", 64)
	alone := func(store string) measure.Key { return at(store, oneByOne, 1).As(bare) }
	w2, watchers := at(stand.RedisEverysec, "W2", 1), at(stand.RedisEverysec, "watch", b.watchers())
	apart, manyApart := at(stand.RedisEverysec, each, 1), at(stand.RedisEverysec, each, 64)
	return []report.Line{
		b.atLeast("W1, 1 client, Redis", "the limit", w1, w1.As(theLimit), 0.6),
		b.atLeast("… with a commit for each superstep", "the limit", apart, w1.As(theLimit), 0.6),
		b.atLeast("W1, 64 clients, Redis", "64 connections with bare commits", many, many.As(bare), 1),
		b.atLeast("… the same", "the limit: bare commits and gRPC", many, many.As(theLimit), 1),
		b.atLeast("… with a commit for each superstep", "64 connections with bare commits", manyApart, many.As(bare), 1),
		b.atLeast("W1, 64 clients, AOF always", "bare commits one by one", always, alone(stand.RedisAlways), 5),
		b.atLeast("W1, 64 clients, SQLite", "bare commits one by one", sqlite, alone(stand.SQLite), 5),
		b.atLeast("W2, 1 client, Redis", "the limit", w2, w2.As(theLimit), 0.5),
		b.atLeast(fmt.Sprintf("%d watchers of a run, Redis", b.watchers()), "bare grpc-go streams", watchers, watchers.As(encoding), 0.6),
		b.tail("p99 of W1 steps, 64 clients", many),
		b.tail("… with a commit for each superstep", manyApart),
	}
}

// tail is a line about the slowest of the timed operations.
func (b *bench) tail(title string, of measure.Key) report.Line {
	l := report.Line{Title: title, Against: "p50", Bound: 4, AtMost: true}
	l.Ratio = b.series.Each(of, func(s workload.Sample) float64 { return s.P99 / max(s.P50, 1e-9) })
	if l.Ratio.Rounds == 0 {
		l.Absent = "not measured"
	}
	return l
}

func againstPeers(b *bench) []report.Line {
	var all []report.Line
	for _, c := range []struct {
		name    string
		clients int
		bound   float64
		peers   []string
	}{
		{"W1", 1, 15, langGraphs()},
		{"W1", 64, 15, langGraphs()},
		{"W2", 1, 15, langGraphs()},
		{"W2", 64, 15, langGraphs()},
		{"W3", 1, 30, langGraphs()},
		{"W5", b.crowd(), 15, langGraphs()},
		{"W1", 1, 1, []string{peer.LangGraphGo}},
		{"W2", 1, 1, []string{peer.LangGraphGo}},
		{"W1", 64, 1, []string{peer.LangGraphGo}},
		{"W2", 64, 1, []string{peer.LangGraphGo}},
	} {
		key := at(stand.RedisEverysec, c.name, c.clients)
		to := b.fastest(key, c.peers...)
		title := fmt.Sprintf("%s, %d clients, Redis", c.name, c.clients)
		if c.clients == 1 {
			title = c.name + ", 1 client, Redis"
		}
		all = append(all, b.atLeast(title, to.Who, key, to, c.bound))
	}
	return all
}

// inOneProcess compares graphd as a library with another one, on the same stores.
func inOneProcess(b *bench) []report.Line {
	var all []report.Line
	for _, c := range []struct {
		name, setting, title string
		clients              int
		bound                float64
	}{
		{"W1", stand.RedisEverysec, "1 client, Redis", 1, 3},
		{"W2", stand.RedisEverysec, "1 client, Redis", 1, 2},
		{"W1", stand.RedisEverysec, "64 clients, Redis", 64, 3},
		{"W2", stand.RedisEverysec, "64 clients, Redis", 64, 2},
		{"W1", stand.Memory, "1 client, memory", 1, 3},
		{"W2", stand.Memory, "1 client, memory", 1, 2},
	} {
		key := at(c.setting, c.name, c.clients)
		title := fmt.Sprintf("embedded: %s, %s", c.name, c.title)
		all = append(all, b.atLeast(title, peer.LangGraphGo, key.As(peer.Embedded), key.As(peer.LangGraphGo), c.bound))
	}
	return all
}

// langGraphs are the two of which the faster counts.
func langGraphs() []string { return []string{peer.LangGraphJS, peer.LangGraph} }

func growth(b *bench) []report.Line {
	on := func(name string) measure.Key { return at(stand.RedisEverysec, name, 1) }
	waiting := 0
	if b.parked != nil {
		waiting = b.parked.threads
	}
	return []report.Line{
		b.amount("W4: bytes stored, Redis", "a byte appended", "", on(stored+atRest), 1.5),
		b.atMost("W4: step 500, Redis", "step 10", on(late), on(early), 1.2),
		b.amount("parked thread, heap of graphd", "none; less than 20 can't be told", "bytes", on(heapPerThread+atRest), 20),
		b.amount("parked thread, Redis", "a state of 1 KB", "bytes", on(redisPerThread+atRest), 3<<10),
		b.atMost("step at 10,000 checkpoints, Redis", "the first steps", on(lastSteps), on(firstSteps), 1.1),
		b.atMost(fmt.Sprintf("W1 beside %d parked threads", waiting), "W1 beside none", on(beside), on(besideNone), 1.1),
		b.atMost("step in a state of 1 MB, Redis", "in a state of 1 KB", on(large), on(small), 1.1),
	}
}
