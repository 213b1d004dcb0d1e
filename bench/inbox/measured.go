package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"google.golang.org/protobuf/proto"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/process"
	"github.com/graphd-dev/graphd/bench/report"
	"github.com/graphd-dev/graphd/bench/workload"
)

// mostOfACell is after how long an operation is not repeated any more.
const mostOfACell = 20 * time.Second

// measured returns the results of all stores, also when some are broken.
func measured(ctx context.Context, o options) (Result, error) {
	began, series := time.Now(), measure.Series{}
	var r Result
	var broken []error
	for _, setting := range o.stores {
		err := r.measureStore(ctx, o, setting, series)
		switch {
		case errors.Is(err, process.ErrNoRedis):
			r.Notes = append(r.Notes, fmt.Sprintf("%s is not measured: %v", setting, err))
		case err != nil:
			broken = append(broken, fmt.Errorf("%s: %w", setting, err))
			r.Notes = append(r.Notes, fmt.Sprintf("BROKEN: %s: %v", setting, err))
		}
	}
	r.About = report.Here(context.WithoutCancel(ctx), began, fmt.Sprintf(
		"%d rounds of %d repetitions, questions and answers for %v each.", o.rounds, o.repeat, o.long))
	r.Figures = report.Figures(series, theLimit)
	return r, errors.Join(broken...)
}

// measureStore measures the parts that are wanted on a store.
func (r *Result) measureStore(ctx context.Context, o options, setting string, series measure.Series) error {
	var broken []error
	if slices.ContainsFunc(o.parts, func(part string) bool { return part != theNotifier }) {
		broken = append(broken, r.measure(ctx, o, setting, series))
	}
	if slices.Contains(o.parts, theNotifier) && ctx.Err() == nil {
		broken = append(broken, r.measureNotifier(ctx, o, setting, series))
	}
	return errors.Join(broken...)
}

// measure fills a store and measures everything on it in rounds.
func (r *Result) measure(ctx context.Context, o options, setting string, series measure.Series) error {
	b, err := startInbox(ctx, o, setting)
	if err != nil {
		return err
	}
	defer b.stop()
	p := populate(o.countOn(setting))
	memory, err := b.usedMemory(ctx)
	if err != nil {
		return err
	}
	if err := b.fill(ctx, p.all, o.lanes); err != nil {
		return err
	}
	if err := b.check(ctx, p); err != nil {
		return err
	}
	if err := b.settle(ctx, o.rest); err != nil {
		return err
	}
	weights, err := b.weigh(ctx, p, memory)
	if err != nil {
		return err
	}
	for what, sample := range weights {
		series.Add(b.key(what, graphd), sample)
	}
	s, err := b.prepare(ctx, p, o, series)
	if err != nil {
		return err
	}
	defer s.end()
	err = s.all(ctx)
	r.add(s)
	return err
}

// session has what is measured on a store in each round.
type session struct {
	*inbox

	options    options
	population population
	series     measure.Series
	operations []operation
	inPage     []operation
	names      *workload.Names
	end        func()
}

// prepare finds the questions with which operations are tried, and makes the limits.
func (b *inbox) prepare(ctx context.Context, p population, o options, series measure.Series) (*session, error) {
	all, err := b.questionsOf(ctx, filter("group", leads))
	if err != nil {
		return nil, err
	}
	if len(all) != p.leads {
		return nil, fmt.Errorf("%d questions of the group are listed instead of %d", len(all), p.leads)
	}
	c, err := b.commands(ctx, p, all[0])
	if err != nil {
		return nil, err
	}
	s := &session{
		inbox: b, options: o, population: p, series: series, names: &workload.Names{Prefix: "pair-"}, end: func() { _ = c.close() },
	}
	err = s.list(ctx, c, all)
	if err != nil {
		s.end()
	}
	return s, err
}

// commands are the bare commands of the store.
func (b *inbox) commands(ctx context.Context, p population, known target) (commands, error) {
	if b.redis != nil {
		return newRedisCommands(ctx, b.redis.Client, known)
	}
	var q graphdv1.Interrupt
	request := &graphdv1.GetInterruptRequest{ThreadId: known.thread, InterruptId: known.id}
	if err := b.inquire(ctx, "GetInterrupt", request, &q, nil); err != nil {
		return nil, err
	}
	return newSQLiteCommands(ctx, b.dir, p.all, proto.Size(&q))
}

// list lists the operations. Those that change a question take the last ones of the group: a change
// makes the trail longer, which pages read as well.
func (s *session) list(ctx context.Context, c commands, group []target) error {
	some := min(s.options.rounds*s.options.repeat, len(group)/2)
	middle, err := s.next(ctx, filter("graph", refund), s.population.refund)
	if err != nil {
		return err
	}
	edited, err := s.makeThreads(ctx, some)
	if err != nil {
		return err
	}
	s.operations = append(s.reads(s.population, s.newLimits(c, s.population.leads), middle, group[:some]), s.changes(group[len(group)-some:], edited)...)
	return nil
}

// all measures the operations, then the page, and then questions and answers beside watchers: the
// threads of these are tidied up later, which would disturb operations.
func (s *session) all(ctx context.Context) error {
	parts := []struct {
		name    string
		measure func() error
	}{
		{theOperations, func() error { return s.rounds(ctx, theOperations, s.cells(s.operations, s.options)) }},
		{thePage, func() error { return s.measureInPage(ctx) }},
		{theWatchers, func() error {
			return s.rounds(ctx, theWatchers, takeTurns(s.pairCells(s.options, s.names, s.series), turnsOfPairs))
		}},
	}
	var broken []error
	for _, p := range parts {
		if !slices.Contains(s.options.parts, p.name) {
			continue
		}
		broken = append(broken, p.measure())
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(broken...)
}

// rounds takes all cells again and again.
func (s *session) rounds(ctx context.Context, what string, groups [][]measure.Cell) error {
	began := time.Now()
	var broken []error
	for number := range s.options.rounds {
		err := s.series.Round(ctx, number, groups)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		broken = append(broken, err)
		fmt.Fprintf(os.Stderr, "inbox: %s: round %d of %d of the %s is done after %v\n", s.setting, number+1, s.options.rounds, what,
			time.Since(began).Round(time.Second))
	}
	return errors.Join(broken...)
}
