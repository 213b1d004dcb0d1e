// Command threads measures pages far behind an offset, and counts, in a list of very many threads,
// over gRPC and over the API of LangGraph Server.
//
// It fails when something is broken, never because something is slow.
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

	"github.com/graphd-dev/graphd/bench/stand"
)

const usage = `Measure pages after an offset and counts of threads.

  threads                              100,000 threads in memory, on SQLite and on Redis
  threads --count 500 --repeat 3       does it work? seconds

The offset is half of the threads. Of seven threads six have the graph that is asked for.

`

type options struct {
	graphd, graphs string
	stores         []string
	count, repeat  int
	lanes          int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program begins here
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, w io.Writer) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "store\twhat\tp50 ms\tp99 ms")
	for _, store := range o.stores {
		if err := measureStore(ctx, o, store, table); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return table.Flush()
}

func parseOptions(arguments []string) (o options, err error) {
	var stores string
	flags := flag.NewFlagSet("threads", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.graphd, "graphd", "../bin/graphd", "graphd binary to measure")
	flags.StringVar(&o.graphs, "graphs", "graphs", "folder with the graphs of the threads")
	flags.StringVar(&stores, "stores", "memory,sqlite,redis-off", "stores, with commas between: "+strings.Join(stand.Settings(), ", "))
	flags.IntVar(&o.count, "count", 100_000, "how many threads")
	flags.IntVar(&o.repeat, "repeat", 50, "how often each call is timed")
	flags.IntVar(&o.lanes, "lanes", 64, "how many threads are made at a time")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.stores = strings.Split(stores, ",")
	for _, s := range o.stores {
		if !slices.Contains(stand.Settings(), s) {
			return o, fmt.Errorf("--stores %s: want some of %s", s, strings.Join(stand.Settings(), ", "))
		}
	}
	if o.count < 100 || o.count > 100_000 || o.repeat < 1 || o.lanes < 1 {
		return o, errors.New("--count must be 100 to 100000, and --repeat and --lanes 1 or more")
	}
	return o, nil
}
