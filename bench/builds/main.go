// Command builds measures two builds of graphd beside each other: the rate of a
// workload, and how long processors work for it. It says how a change of graphd
// acts on a workload that it should leave alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/graphd-dev/graphd/bench/measure"
	"github.com/graphd-dev/graphd/bench/stand"
	"github.com/graphd-dev/graphd/bench/workload"
)

const usage = `Measure two builds of graphd beside each other.

  builds --before OLD --now NEW       W2 in memory, on SQLite and on Redis, some minutes

In a round both builds begin on an empty store and take turns of a part of a second, since
other work of the machine hits both of them then. Ratios are those of single rounds, the new
build to the old one: of the median, and of the lowest and the highest round.

`

type options struct {
	before, now, graphs string
	workloads, stores   []string
	rounds, clients     int
	long                time.Duration
	connections         int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program begins here
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "builds:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, w io.Writer) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "workload\tstore\toperations/s\tratio\tprocessor of graphd\tratio\tprocessor of Redis\tratio")
	for _, store := range o.stores {
		if err := compareOnStore(ctx, o, store, table); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return table.Flush()
}

func parseOptions(arguments []string) (o options, err error) {
	var workloads, stores string
	flags := flag.NewFlagSet("builds", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.before, "before", "", "graphd binary to compare with")
	flags.StringVar(&o.now, "now", "../bin/graphd", "graphd binary to measure")
	flags.StringVar(&o.graphs, "graphs", "graphs", "folder with the graphs of the workloads")
	flags.StringVar(&workloads, "workloads", "W2", "workloads, with commas between: W1, W2, W3")
	flags.StringVar(&stores, "stores", "memory,sqlite,redis-off", "stores, with commas between: "+strings.Join(stand.Settings(), ", "))
	flags.IntVar(&o.rounds, "rounds", 7, "how many rounds")
	flags.IntVar(&o.clients, "clients", 16, "how many clients at once")
	flags.IntVar(&o.connections, "connections", 4, "gRPC connections that all clients share")
	flags.DurationVar(&o.long, "for", 4*time.Second, "how long each build is measured in a round")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.workloads, o.stores = strings.Split(workloads, ","), strings.Split(stores, ",")
	for _, s := range o.stores {
		if !slices.Contains(stand.Settings(), s) {
			return o, fmt.Errorf("--stores %s: want some of %s", s, strings.Join(stand.Settings(), ", "))
		}
	}
	if o.before == "" {
		return o, errors.New("--before is missing: want a graphd binary to compare with")
	}
	if o.rounds < 1 || o.clients < 1 || o.connections < 1 || o.long <= 0 {
		return o, errors.New("--rounds, --clients, --connections and --for must be positive")
	}
	return o, nil
}

// build is a binary, its place on a store, and what a round has measured of it.
type build struct {
	who   string
	stand *stand.Stand

	operations, took      float64
	graphdTime, redisTime float64
	doOne                 workload.One
}

// Who is measured.
const (
	before = "before"
	now    = "now"
)

// redisOf marks the samples whose Processor is that of the Redis server of a build.
const redisOf = "redis of "

func compareOnStore(ctx context.Context, o options, store string, table io.Writer) error {
	builds := []*build{{who: before}, {who: now}}
	defer func() {
		for _, b := range builds {
			if b.stand != nil {
				b.stand.Stop()
			}
		}
	}()
	for i, binary := range []string{o.before, o.now} {
		var err error
		p := stand.Program{Graphd: binary, Graphs: o.graphs, Connections: o.connections}
		if builds[i].stand, err = stand.Start(ctx, p, store, nil); err != nil {
			return err
		}
	}
	for _, name := range o.workloads {
		key, series := measure.Key{Workload: name, Store: store, Clients: o.clients}, measure.Series{}
		for round := range o.rounds {
			if err := takeRound(ctx, o, name, round, builds); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, b := range builds {
				b.addSamples(series, key)
			}
			fmt.Fprintf(os.Stderr, "builds: %s on %s, round %d of %d\n", name, store, round+1, o.rounds)
		}
		writeRow(table, series, key)
	}
	return nil
}

// turns is how often the builds take turns in a round.
const turns = 16

// takeRound measures the builds on empty stores.
func takeRound(ctx context.Context, o options, name string, round int, builds []*build) error {
	for _, b := range builds {
		if err := b.startEmpty(ctx, o, name, round); err != nil {
			return fmt.Errorf("%s: %w", b.who, err)
		}
	}
	for turn := range turns {
		for i := range builds {
			b := builds[(i+turn+round)%len(builds)]
			if err := b.takeTurn(ctx, o); err != nil {
				return fmt.Errorf("%s: %w", b.who, err)
			}
		}
	}
	return nil
}

// startEmpty starts a build on an empty store, and warms it up.
func (b *build) startEmpty(ctx context.Context, o options, name string, round int) error {
	*b = build{who: b.who, stand: b.stand}
	err := b.stand.Renew(ctx)
	if err != nil {
		return err
	}
	names := &workload.Names{Prefix: fmt.Sprintf("%s%d-", b.who, round)}
	if b.doOne, err = workload.ByName(name, b.stand.Graphd, names); err != nil {
		return err
	}
	_, err = workload.Load(ctx, o.clients, o.long/4, 1, b.doOne)
	return err
}

func (b *build) takeTurn(ctx context.Context, o options) error {
	graphd, redis, err := b.processorTimes(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := workload.Load(ctx, o.clients, o.long/turns, 1, b.doOne)
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	graphdAfter, redisAfter, err := b.processorTimes(ctx)
	b.took += took
	b.operations += s.Rate * took
	b.graphdTime += graphdAfter - graphd
	b.redisTime += redisAfter - redis
	return err
}

// addSamples adds what a round has measured.
func (b *build) addSamples(series measure.Series, key measure.Key) {
	s := workload.Sample{Rate: b.operations / b.took, Processor: b.graphdTime / b.operations}
	series.Add(key.As(b.who), s)
	s.Processor = b.redisTime / b.operations
	series.Add(key.As(redisOf+b.who), s)
}

// processorTimes returns how long processors have worked for graphd and for Redis, in seconds.
func (b *build) processorTimes(ctx context.Context) (graphd, redis float64, err error) {
	d, err := b.stand.Server.ProcessorTime(ctx)
	if err != nil || b.stand.Redis == nil {
		return d.Seconds(), 0, err
	}
	info, err := b.stand.Redis.Info(ctx, "cpu")
	return d.Seconds(), info["used_cpu_sys"] + info["used_cpu_user"], err
}

func writeRow(w io.Writer, series measure.Series, key measure.Key) {
	rate := func(s workload.Sample) float64 { return s.Rate }
	processor := func(s workload.Sample) float64 { return s.Processor * 1e6 }
	cell := func(who string, number func(workload.Sample) float64, unit string) string {
		of := key.As(who + now)
		value, ratio := series.Each(of, number), series.Compare(of, key.As(who+before), number)
		if ratio.Rounds == 0 {
			return "–\t–"
		}
		return fmt.Sprintf("%.0f%s\t%.3f (%.3f – %.3f)", value.Median, unit, ratio.Median, ratio.Min, ratio.Max)
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", key.Workload, key.Store,
		cell("", rate, ""), cell("", processor, " µs"), cell(redisOf, processor, " µs"))
}
