// Command live measures what runs cost that wait for workers: memory of the server, its processor and
// the commands of Redis while nothing happens, and how long other servers take to take the runs over
// when theirs is killed.
//
// It fails when a run is lost, never because something is slow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // the program begins here
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench/live:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be done
	}
}

type options struct {
	graphd string
	stores []string
	counts []int // of runs
	quiet  time.Duration
	kill   bool
}

func run(ctx context.Context, args []string) error {
	var o options
	var stores, counts string
	flags := flag.NewFlagSet("live", flag.ContinueOnError)
	flags.StringVar(&o.graphd, "graphd", "../bin/graphd", "the binary")
	flags.StringVar(&stores, "stores", "memory,sqlite,redis-everysec", "stores, with commas between")
	flags.StringVar(&counts, "runs", "1000,10000", "numbers of runs that wait at the same time, with commas between")
	flags.DurationVar(&o.quiet, "for", 20*time.Second, "how long the server is watched while nothing happens")
	flags.BoolVar(&o.kill, "kill", false, "kill the server, and measure how long another one takes to take over all runs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.quiet <= 0 {
		return errors.New("-for must be more than 0")
	}
	o.stores = strings.Split(stores, ",")
	for text := range strings.SplitSeq(counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxRuns {
			return fmt.Errorf("-runs has %q: want numbers from 1 to %d", text, maxRuns)
		}
		o.counts = append(o.counts, n)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "store\truns\tstarted in s\tKB of memory a run\tKB of heap\tKB of stacks\tgoroutines a run\tprocessor, % of a core\tcommands of Redis/s\ttaken over in s\tended in s")
	for _, store := range o.stores {
		for _, count := range o.counts {
			m, err := measureRuns(ctx, o, store, count)
			if err != nil {
				return fmt.Errorf("%d runs on %s: %w", count, store, err)
			}
			m.printRow(w, store, count)
			fmt.Fprintf(os.Stderr, "bench/live: %d runs on %s measured\n", count, store)
		}
	}
	return w.Flush()
}
