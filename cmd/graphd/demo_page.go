package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/server"
)

// demoLinger is how long a demo on the page goes on after the end of its run.
const demoLinger = 20 * time.Second

// checkPage returns an *exit.UsageError for options that --page contradicts.
func (o demoOptions) checkPage() error {
	switch {
	case o.Answer != "":
		return exit.Usagef("--page and --answer contradict each other").WithHint("leave one of them out: with --page the answer comes from the page")
	case o.store != "":
		return exit.Usagef("--page and --store contradict each other").
			WithHint("leave one of them out: with --page the demo is in memory; graphd dev has the page and a store")
	}
	return nil
}

// runDemoOnPage starts a server in memory with the page, runs the demo against it, and drains it.
func (p *program) runDemoOnPage(ctx context.Context, o demoOptions) (err error) {
	o.ResumeArgs, o.StoresNothing = []string{"demo", "--page"}, true
	var served server.Options
	served.RegisterFlags(pflag.NewFlagSet("", pflag.ContinueOnError)) // which sets the limits
	served.Listen, served.HTTP, served.Store = "127.0.0.1:0", "127.0.0.1:0", "memory"
	life := context.WithoutCancel(ctx)
	s, err := server.NewServer(life, served, zap.NewNop(), p.version)
	if err != nil {
		return err
	}
	s.StartServing()
	defer func() {
		limit, cancel := context.WithTimeout(life, demoDrain)
		defer cancel()
		err = errors.Join(err, s.DrainServer(limit))
	}()
	p.connection.useOwnServer(s.Address(), server.Options{})
	if err := output.WriteLine(p.Out, "server %s  store memory", s.Address()); err != nil {
		return err
	}
	return p.withSession(func(session *cli.Session) error {
		return session.RunDemoOnPage(ctx, o.DemoOptions, cli.DemoPage{
			URL: s.HTTPURL(), Linger: p.demoLinger, Open: func(address string) { p.openPage(address, o.noBrowser) },
		})
	})
}
