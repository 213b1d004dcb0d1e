package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/graphd-dev/graphd/bench/credential"
	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/workload"
)

// The tenants of the part noise, which are contestants, too: the quiet one alone, and beside
// the noisy one, which calls at a multiple of its limit.
const (
	quiet = "default"
	noisy = "noisy"

	alone       = "a tenant alone"
	besideNoise = "beside a noisy tenant"
)

const (
	noisyLimit    = 10 // calls per second
	noisyMultiple = 100
	// noiseSamples is how many samples long one of this part is: a p99 needs them.
	noiseSamples = 5
	// noiseWorkload marks the workloads of this part, noiseRate is what the noisy tenant does.
	noiseWorkload = ", two tenants"
	noiseRate     = "calls of the noisy tenant, as multiples of its limit"
)

// startNoisy starts a server with limits, for two tenants.
func (r *round) startNoisy() (map[string]workload.Target, error) {
	limits, err := r.credentials.QuotaOptions(fmt.Sprintf("overrides:\n- tenants: [%s]\n  tenant: { calls: { per_second: %d } }\n", noisy, noisyLimit))
	if err != nil {
		return nil, err
	}
	_, targets, err := r.startTwin(append(limits, r.credentials.KeyOptions(keyFile)...), nil, map[string][]grpc.DialOption{
		quiet: {credential.SendToken(r.keys[quiet])}, noisy: {credential.SendToken(r.keys[noisy])},
	}, r.keys[noisy])
	if err != nil {
		return nil, err
	}
	return targets, r.warmUp(r.context, targets[quiet])
}

// noise does W1 and W2 for one tenant, alone and beside another one that calls far beyond
// its limit. The server starts with the first cell.
func noise(r *round) [][]measure.Cell {
	if !r.wide() || !slices.Contains(securedStores(), r.Setting) {
		return nil
	}
	start := sync.OnceValues(r.startNoisy)
	var groups [][]measure.Cell
	for _, w := range r.repeated() {
		load := func(ctx context.Context, t workload.Target) (workload.Sample, error) {
			return workload.Load(ctx, 1, noiseSamples*r.long, w.counts, w.one(t))
		}
		cell := func(who string, take func(context.Context, map[string]workload.Target) (workload.Sample, error)) measure.Cell {
			return measure.Cell{Key: r.key(w.name+noiseWorkload, 1).As(who), Take: func(ctx context.Context) (workload.Sample, error) {
				targets, err := start()
				if err != nil {
					return workload.Sample{}, err
				}
				return take(ctx, targets)
			}}
		}
		groups = append(groups, []measure.Cell{
			cell(alone, func(ctx context.Context, targets map[string]workload.Target) (workload.Sample, error) {
				return load(ctx, targets[quiet])
			}),
			cell(besideNoise, func(ctx context.Context, targets map[string]workload.Target) (workload.Sample, error) {
				return r.besideNoise(ctx, targets[noisy], func() (workload.Sample, error) { return load(ctx, targets[quiet]) })
			}),
		})
	}
	return groups
}

// besideNoise takes a sample while the noisy tenant calls, from its first refusal on.
func (r *round) besideNoise(ctx context.Context, t workload.Target, take func() (workload.Sample, error)) (workload.Sample, error) {
	n := workload.StartNoise(ctx, noisyLimit*noisyMultiple, workload.W1(t))
	var s workload.Sample
	err := n.AwaitRefusal(ctx)
	if err == nil {
		s, err = take()
	}
	rate, ended := n.Stop()
	r.series.Add(r.key(noiseRate, 1).As(noisy), workload.Sample{Rate: rate / noisyLimit})
	return s, errors.Join(err, ended)
}

// neighbours are the goals of noise.
func neighbours(b *bench) []report.Line {
	var all []report.Line
	for _, c := range b.nameStores("W1" + noiseWorkload) {
		for _, w := range []string{"W1", "W2"} {
			of := at(c.store, w+noiseWorkload, 1).As(besideNoise)
			all = append(all, b.slower(fmt.Sprintf("p99 of %s beside a noisy tenant, %s", w, c.name), "alone", of, of.As(alone), 2, p99))
		}
		calls := b.amount("… which calls, "+c.name, "its limit", "times", at(c.store, noiseRate, 1).As(noisy), 0.95*noisyMultiple)
		calls.AtMost = false
		all = append(all, calls)
	}
	return all
}
