package main

import (
	"context"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/peer"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// startPeers starts installed peers and notes absent peers.
func (b *bench) startPeers(ctx context.Context) {
	if b.peers == "" {
		b.note("peers are not measured: --peers is empty")
		return
	}
	var absent []string
	b.beside, absent = peer.Start(ctx, b.peers)
	for _, why := range absent {
		b.note("%s", why)
	}
}

func (b *bench) stopPeers() {
	for _, p := range b.beside {
		p.Stop()
	}
}

// besides are the cells of all peers that have a workload on this store. Each
// begins with an empty database: some of them get slower with every thread.
func (r *round) besides(name string, clients, repeat, counts int) []measure.Cell {
	kind, _, _ := strings.Cut(r.Setting, "-")
	if r.Setting == stand.RedisOff || r.Setting == stand.RedisAlways || r.size != full && clients == 256 || clients > 1 && !r.wide() {
		return nil
	}
	atOnce := clients
	if r.size != full {
		atOnce = min(clients, 250) // or W5 of the slower peers takes most of the time
	}
	var cells []measure.Cell
	for _, p := range r.beside {
		if !p.Can(name, kind, atOnce) {
			continue
		}
		cells = append(cells, measure.Cell{Key: r.key(name, clients).As(p.Who), Take: func(ctx context.Context) (workload.Sample, error) {
			if r.Redis != nil {
				if err := r.Redis.Empty(ctx, stand.PeerDatabase); err != nil {
					return workload.Sample{}, err
				}
			}
			s, err := p.Measure(ctx, peer.Request{
				Workload: name, Store: kind, URL: r.PeerURL(p.Who), Clients: atOnce, Seconds: r.long.Seconds(), Repeat: repeat,
			})
			s.Rate *= float64(counts)
			return s, err
		}})
	}
	return cells
}

// fastest is the peer of some that did best at something, by the median.
func (b *bench) fastest(k measure.Key, among ...string) measure.Key {
	return slices.MaxFunc(keys(k, among), func(one, other measure.Key) int {
		switch a, z := b.series.Rate(one).Median, b.series.Rate(other).Median; {
		case a < z:
			return -1
		case a > z:
			return 1
		default:
			return 0
		}
	})
}

func keys(k measure.Key, who []string) []measure.Key {
	all := make([]measure.Key, 0, len(who))
	for _, w := range who {
		all = append(all, k.As(w))
	}
	return all
}
