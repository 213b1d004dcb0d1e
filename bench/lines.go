package main

import (
	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
)

// lines are the goals, each a ratio of two figures of this run.
func lines(b *bench) []report.Line {
	everysec := func(name string, clients int) measure.Key {
		return measure.Key{Workload: name, Store: stand.RedisEverysec, Clients: clients, Who: graphd}
	}
	ratio := func(title, against string, of, to measure.Key, bound float64) report.Line {
		return report.Line{Title: title, Against: against, Ratio: b.series.Ratio(of, to), Bound: bound, Absent: "not measured"}
	}
	w1, many := everysec("W1", 1), everysec("W1", 64)
	always, sqlite := many, many
	always.Store, sqlite.Store = stand.RedisAlways, stand.SQLite
	first := func(k measure.Key) measure.Key {
		k.Workload = oneByOne
		k.Clients = 1
		return k.As(bare)
	}
	all := []report.Line{
		ratio("W1, 1 client, Redis", "limit", w1, w1.As(theLimit), 0.6),
		ratio("W1, 64 clients, Redis", "64 connections, bare commits, no gRPC", many, many.As(bare), 1),
		ratio("W1, 64 clients, Redis, also", "limit: 64 connections with gRPC", many, many.As(theLimit), 1),
		ratio("W1, 64 clients, Redis always", "bare commits one by one", always, first(always), 5),
		ratio("W1, 64 clients, SQLite, full sync", "bare commits one by one", sqlite, first(sqlite), 5),
		ratio("W2, 1 client, Redis", "limit", everysec("W2", 1), everysec("W2", 1).As(theLimit), 0.5),
	}
	return all
}
