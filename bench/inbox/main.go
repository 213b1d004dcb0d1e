// Command inbox measures what the inbox costs while very many questions are open: pages,
// counts, changes and watchers, beside the least that the store and gRPC need for them.
// ../README.md says how each figure comes about.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program begins here
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "inbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o, err := parse(arguments, os.Stderr)
	if err != nil {
		return err
	}
	if o.from != "" {
		r, err := load(o.from)
		if err != nil {
			return err
		}
		return o.deliver(r, os.Stdout)
	}
	r, err := measured(ctx, o)
	if len(r.Figures) == 0 {
		return err
	}
	return errors.Join(o.deliver(r, os.Stdout), err)
}
