package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/graphd-dev/graphd/bench/credential"
	"github.com/graphd-dev/graphd/bench/limit"
	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/peer"
	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

// bench is one run of the benchmark.
type bench struct {
	options
	program stand.Program
	calls   map[string]limit.Script
	series  measure.Series
	notes   []string
	broken  []error
	beside  []*peer.Peer
	parked  *parked
	remote  *remote
	began   time.Time

	credentials   *credential.Set
	credentialDir string
	keys          map[string]string // API keys by tenant
}

// Who is measured.
const (
	graphd   = "graphd"
	theLimit = "limit"
)

// measured returns the results, also when some are broken, or when it was
// interrupted.
func measured(ctx context.Context, o options) (report.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return report.Result{}, err
	}
	b := &bench{
		options: o, series: measure.Series{}, began: time.Now(),
		program: stand.Program{Graphd: o.graphd, Self: self, Graphs: o.graphs, Connections: o.connections},
	}
	if b.program.Graphd, err = filepath.Abs(o.graphd); err != nil {
		return report.Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer b.stopNodes()
	if err := b.startNodes(ctx); err != nil {
		return report.Result{}, err
	}
	defer b.removeCredentials()
	if err := b.makeCredentials(ctx); err != nil {
		return report.Result{}, err
	}
	if err := b.record(ctx); err != nil {
		return report.Result{}, err
	}
	b.startPeers(ctx)
	defer b.stopPeers()
	defer b.unpark()
	if err := b.measure(ctx); err != nil {
		b.breaks("not all was measured", err)
	}
	about := report.Here(context.WithoutCancel(ctx), b.began, fmt.Sprintf("%d rounds, samples of %v, %d connections shared by all clients.",
		o.rounds, o.long, o.connections))
	for _, p := range b.beside {
		about.Versions[p.Who] = p.Version
	}
	return report.Result{
		About: about,
		Lines: lines(b), Figures: report.Figures(b.series, theLimit), Notes: b.notes,
	}, errors.Join(b.broken...)
}

// measure parks threads, takes the rounds, and weighs the parked threads again.
func (b *bench) measure(ctx context.Context) error {
	if err := b.park(ctx); err != nil {
		b.breaks("parked threads", err)
		b.unpark()
	}
	if err := b.rounds(ctx); err != nil {
		return err
	}
	if b.parked == nil {
		return nil
	}
	return b.parked.rest(ctx, b.size, b.series)
}

func (b *bench) unpark() {
	if b.parked != nil {
		b.parked.Stop()
		b.parked = nil
	}
}

// record determines the work of the limit. Without a Redis it leaves out the stores
// on Redis.
func (b *bench) record(ctx context.Context) error {
	s, err := stand.Start(ctx, b.program, stand.RedisOff, nil)
	if errors.Is(err, process.ErrNoRedis) {
		b.note("Redis is absent: %v", err)
		b.stores = slices.DeleteFunc(b.stores, func(setting string) bool { return setting != stand.Memory && setting != stand.SQLite })
		s, err = stand.Start(ctx, b.program, stand.Memory, nil)
	}
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.Renew(ctx); err != nil {
		return err
	}
	b.calls, err = stand.Record(ctx, s, b.watched())
	if err != nil {
		return err
	}
	for _, call := range []string{workload.Chain, workload.Question, workload.Answer, workload.Fan} {
		c := b.calls[call]
		b.note("the limit of %s: %d commits of %d bytes, %d messages", call, c.Commits, c.Bytes, len(c.Messages))
	}
	return nil
}

// breaks remembers that something is broken; the rest is measured all the same.
func (b *bench) breaks(where string, err error) {
	b.broken = append(b.broken, fmt.Errorf("%s: %w", where, err))
	b.note("BROKEN: %s: %v", where, err)
}

func (b *bench) note(format string, arguments ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, arguments...))
}

// rounds measures every part on every store, again and again.
func (b *bench) rounds(ctx context.Context) error {
	var stands []*stand.Stand
	defer func() {
		for _, s := range stands {
			s.Stop()
		}
	}()
	for _, setting := range b.stores {
		s, err := stand.Start(ctx, b.program, setting, b.calls)
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		stands = append(stands, s)
	}
	for number := range b.options.rounds {
		for _, s := range stands {
			err := b.round(ctx, number, s)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				b.breaks(fmt.Sprintf("round %d", number+1), err)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: round %d of %d is done after %v\n", number+1, b.options.rounds, time.Since(b.began).Round(time.Second))
	}
	return nil
}

// round begins with an empty store and new servers, warms them up and takes
// every sample once.
func (b *bench) round(ctx context.Context, number int, s *stand.Stand) error {
	if err := s.Renew(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.Setting, err)
	}
	r := &round{bench: b, Stand: s, names: &workload.Names{Prefix: fmt.Sprintf("r%d-", number)}, context: ctx}
	defer func() {
		for _, end := range r.after {
			end()
		}
	}()
	for _, t := range []workload.Target{s.Graphd, s.Limit} {
		if err := b.warmUp(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", s.Setting, err)
		}
	}
	var groups [][]measure.Cell
	for _, p := range parts() {
		if b.chosen(p.name) {
			groups = append(groups, p.cells(r)...)
		}
	}
	return b.series.Round(ctx, number, groups)
}

// warmUp has one client and many use a server.
func (b *bench) warmUp(ctx context.Context, t workload.Target) error {
	for _, clients := range []int{1, 16} {
		if _, err := workload.Load(ctx, clients, b.long/2, 1, workload.W1(t)); err != nil {
			return err
		}
	}
	return nil
}
