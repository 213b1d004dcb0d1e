package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// Measurements taken once, on the stand with the threads that wait.
const (
	heapPerThread  = "parked thread, bytes of heap in graphd"
	redisPerThread = "parked thread, bytes in Redis"
	stored         = "W4, bytes stored for a byte appended"
	atRest         = ", at rest"
	beside         = "W1 beside parked threads"
	besideNone     = "W1 beside none"
	startUp        = "start-up, ms"
	binarySize     = "binary, MB"
)

// parked is a second Redis and graphd, on which very many threads wait for an
// answer all the while.
type parked struct {
	*stand.Stand
	threads int
	some    []string // of the threads
	lists   []string // threads of W4
	since   time.Time
	before  float64 // heap with half of the threads: all that more clients and connections take is there
}

// park puts it up.
func (b *bench) park(ctx context.Context) error {
	if !b.chosen("parked") || !slices.Contains(b.stores, stand.RedisEverysec) {
		return nil
	}
	s, err := stand.Start(ctx, b.program, stand.RedisEverysec, nil)
	if err != nil {
		return err
	}
	b.parked = &parked{Stand: s, threads: map[string]int{smoke: 100, normal: 20_000, full: 100_000}[b.size]}
	if err := s.Renew(ctx); err != nil {
		return err
	}
	return b.parked.fill(ctx, b.series)
}

func (p *parked) fill(ctx context.Context, series measure.Series) error {
	names := &workload.Names{Prefix: "parked-"}
	input := fmt.Sprintf(`{"x":0,"note":%q}`, workload.KB())
	half := func() error {
		const lanes = 50
		_, err := workload.Repeat(ctx, lanes, p.threads/2/lanes, 1, func(ctx context.Context, lane int, _ *workload.Times) error {
			return workload.Ask(ctx, p.Graphd, lane, names.Next(), input)
		})
		return err
	}
	if err := half(); err != nil {
		return err
	}
	var err error
	if p.before, err = p.Server.Heap(ctx); err != nil {
		return err
	}
	if err := half(); err != nil {
		return err
	}
	for range 100 {
		thread := names.Next()
		if err := workload.Ask(ctx, p.Graphd, 0, thread, input); err != nil {
			return err
		}
		p.some = append(p.some, thread)
	}
	for range 3 {
		thread := names.Next()
		if _, err := workload.Steps(ctx, p.Graphd, "list", thread, workload.List(listSteps), listSteps); err != nil {
			return err
		}
		p.lists = append(p.lists, thread)
	}
	p.since = time.Now()
	return p.weigh(ctx, "", series)
}

// weigh measures the present cost of threads.
func (p *parked) weigh(ctx context.Context, when string, series measure.Series) error {
	heap, err := p.Server.Heap(ctx)
	if err != nil {
		return err
	}
	series.Add(p.key(heapPerThread+when), workload.Sample{Rate: (heap - p.before) / float64(p.threads/2)})
	bytes, shared, err := p.Redis.Weigh(ctx)
	if err != nil {
		return err
	}
	for _, thread := range p.some {
		series.Add(p.key(redisPerThread+when), workload.Sample{Rate: bytes[thread] + shared/float64(p.threads)})
	}
	for _, thread := range p.lists {
		series.Add(p.key(stored+when), workload.Sample{Rate: bytes[thread] / float64(listSteps*len(workload.KB()))})
	}
	return nil
}

// rest waits until graphd has tidied up threads at rest, and weighs again.
func (p *parked) rest(ctx context.Context, size string, series measure.Series) error {
	if size == smoke {
		return nil
	}
	const until = 2*time.Minute + 10*time.Second
	timer := time.NewTimer(time.Until(p.since.Add(until)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return p.weigh(ctx, atRest, series)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *parked) key(name string) measure.Key {
	return measure.Key{Workload: name, Store: p.Setting, Clients: 1, Who: graphd}
}

// besideParked runs the chain beside the threads that wait, and without such threads.
func (r *round) besideParked() []measure.Cell {
	if r.parked == nil || r.Setting != stand.RedisEverysec {
		return nil
	}
	one := func(t workload.Target) func(context.Context) (workload.Sample, error) {
		return func(ctx context.Context) (workload.Sample, error) {
			return workload.Load(ctx, 1, r.long, workload.ChainLength, workload.W1(t))
		}
	}
	return []measure.Cell{
		{Key: r.key(beside, 1).As(graphd), Take: one(r.parked.Graphd)},
		{Key: r.key(besideNone, 1).As(graphd), Take: one(r.Graphd)},
	}
}

// start notes how long the server of this round took to start, and how large
// its binary is.
func start(r *round) [][]measure.Cell {
	return [][]measure.Cell{{
		{Key: r.key(startUp, 1).As(graphd), Take: func(context.Context) (workload.Sample, error) {
			return workload.Sample{Rate: float64(r.Server.Started.Microseconds()) / 1e3}, nil
		}},
		{Key: r.key(binarySize, 1).As(graphd), Take: func(context.Context) (workload.Sample, error) {
			info, err := os.Stat(r.program.Graphd)
			if err != nil {
				return workload.Sample{}, err
			}
			return workload.Sample{Rate: float64(info.Size()) / 1e6}, nil
		}},
	}}
}

func waiting(r *round) [][]measure.Cell {
	if cells := r.besideParked(); cells != nil {
		return [][]measure.Cell{cells}
	}
	return nil
}
