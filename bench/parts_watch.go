package main

import (
	"context"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// encoding is the limit whose watchers get messages that are encoded for each
// of them, as grpc-go does it.
const encoding = "bare grpc-go streams"

// watched is how many events every watcher gets.
func (b *bench) watched() int {
	return map[string]int{smoke: 10, normal: 100, full: 300}[b.size]
}

// watchers is the number of clients that follow one run.
func (b *bench) watchers() int { return map[string]int{smoke: 20, normal: 1000, full: 1000}[b.size] }

// watch has 1,000 clients follow one run.
func watch(r *round) [][]measure.Cell {
	if r.Setting != stand.RedisEverysec && (r.size == normal || r.Setting != stand.Memory) {
		return nil
	}
	var groups [][]measure.Cell
	for _, watchers := range []int{1, r.watchers()} {
		take := func(ctx context.Context, t workload.Target) (workload.Sample, error) {
			return workload.Watchers(ctx, t, r.names, watchers, r.watched())
		}
		encoded := r.Limit
		encoded.Method = func(call string) string {
			if call == workload.Watch {
				call = workload.WatchEncoded
			}
			return r.Limit.Method(call)
		}
		groups = append(groups, append(r.both("watch", watchers, take), measure.Cell{
			Key:  r.key("watch", watchers).As(encoding),
			Take: func(ctx context.Context) (workload.Sample, error) { return take(ctx, encoded) },
		}))
	}
	return groups
}
