// Command bench measures graphd beside the limit of its store and gRPC alone,
// and beside other runtimes of graphs, all in the same run on the same machine.
// README.md says how each figure comes about.
//
// It fails when something is broken, never because something is slow.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/graphd-dev/graphd/bench/limit"
	"github.com/graphd-dev/graphd/bench/nodes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program begins here
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 1 { // the processes that it starts of itself
		switch arguments[0] {
		case "limit":
			return limit.Serve(ctx, os.Stdin, os.Stdout)
		case "nodes":
			return nodes.Serve(ctx, os.Stdin, os.Stdout)
		}
	}
	o, err := parse(arguments, os.Stderr)
	if err != nil {
		return err
	}
	if o.from != "" {
		result, err := load(o.from)
		if err != nil {
			return err
		}
		return o.deliver(result, os.Stdout)
	}
	result, err := measured(ctx, o)
	if len(result.Figures) == 0 {
		return err
	}
	return errors.Join(o.deliver(result, os.Stdout), err)
}
