package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/telemetry"
)

// graphWatchInterval is the interval at which graph files are checked for changes.
const graphWatchInterval = 500 * time.Millisecond

// What `dev` has without the options.
const (
	devStore = devFolder + "/dev.db"
	devPage  = "127.0.0.1:7780"
)

func (p *program) devCommand() *cobra.Command {
	var o server.Options
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on a local store and take up changed graph files",
		Long: `Serve like ` + "`serve`" + `, on a store in .graphd and with logs for people. The graph files of --graphs
(default: this folder) are read again when they change: a changed file is a new version of its graph.

The page for browsers is on 127.0.0.1:7780, or on a free port when that is taken: --http names another address, and --http ''
serves none. The command prints its link and, where a person sits at this machine, opens it in the browser.

On loopback everybody may call. With another address in --listen or --http the command makes what the server lacks, in .graphd:
a CA and a certificate, and an API key of an admin. It prints the token, and how other machines call. The link of the page
has the token then, and is not opened: other users of this machine see with what a browser is started.`,
		Example: `  graphd dev
  graphd dev --listen 0.0.0.0:7700`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.CompleteOptions(cmd.Flags(), p.getenv); err != nil {
				return err
			}
			o.LogsFailuresOnly, o.HTTPMayMove = true, !cmd.Flags().Changed("http")
			return p.runDev(cmd.Context(), o, noBrowser)
		},
	}
	f := cmd.Flags()
	o.RegisterFlags(f)
	for name, value := range map[string]string{"store": "", "log-format": telemetry.FormatConsole, "http": devPage} {
		replaceDefault(f.Lookup(name), value)
	}
	registerNoOpen(f, &noBrowser)
	return cmd
}

// replaceDefault gives an option of `serve` another default.
func replaceDefault(f *pflag.Flag, value string) {
	cobra.CheckErr(f.Value.Set(value))
	f.DefValue = value
	f.Usage, _, _ = strings.Cut(f.Usage, " (default: ")
}

func (p *program) runDev(ctx context.Context, o server.Options, noBrowser bool) error {
	if o.Store == "" {
		if err := os.MkdirAll(filepath.Dir(devStore), 0o700); err != nil {
			return err
		}
		o.Store = "sqlite:" + devStore
	}
	if len(o.Graphs) == 0 {
		o.Graphs = []string{"."}
	}
	made, err := secureDev(ctx, &o)
	if err != nil {
		return err
	}
	log, err := p.newLogger(o)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	dirs := o.Graphs
	o.Graphs = nil // a broken file must not prevent the start
	return server.RunServer(ctx, o, log, server.Environment{Version: p.version, Getenv: p.getenv}, func(s *server.Server) {
		for _, dir := range dirs {
			watching.Go(s.WatchGraphs(watch, dir, graphWatchInterval))
		}
		p.connection.CA = cmp.Or(made.ca, p.connection.CA)
		p.connection.useOwnServer(callableAddress(s.Address()), o)
		w := newWelcome(s, o, made)
		if err := w.printTo(p.Err, p.newInvocation()); err != nil {
			log.Warn("the welcome can't be printed", zap.Error(err))
		}
		if made.token == "" { // it would be among the arguments of a process, which other users can read
			p.openPage(w.page, noBrowser)
		}
	})
}
