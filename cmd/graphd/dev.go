package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/telemetry"
)

// graphWatchInterval is the interval at which graph files are checked for changes.
const graphWatchInterval = 500 * time.Millisecond

// devStore is the store of `dev` without --store.
const devStore = devFolder + "/dev.db"

func (p *program) devCommand() *cobra.Command {
	var o server.Options
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on a local store and take up changed graph files",
		Long: `Serve like ` + "`serve`" + `, on a store in .graphd and with logs for people. The graph files of --graphs
(default: this folder) are read again when they change: a changed file is a new version of its graph.

On loopback everybody may call. With another address in --listen the command makes what the server lacks, in .graphd: a
CA and a certificate, and an API key of an admin. It prints the token, and how other machines call.`,
		Example: `  graphd dev
  graphd dev --listen 0.0.0.0:7700`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Store, o.LogFormat, o.LogsFailuresOnly = "", telemetry.FormatConsole, true
			if err := o.CompleteOptions(cmd.Flags(), p.getenv); err != nil {
				return err
			}
			return p.runDev(cmd.Context(), o)
		},
	}
	o.RegisterFlags(cmd.Flags())
	return cmd
}

func (p *program) runDev(ctx context.Context, o server.Options) error {
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
		if err := printWelcome(p.Err, s.Address(), made, p.newInvocation()); err != nil {
			log.Warn("the welcome can't be printed", zap.Error(err))
		}
	})
}

// printWelcome prints how to call the server: with the token of a server that knows
// callers by a key of its own, and from other machines with a copy of the CA.
func printWelcome(w io.Writer, address string, made devSecurity, call shell.Invocation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\ngraphd listens on %s. In another terminal:\n", address)
	if made.token != "" {
		fmt.Fprintf(&b, "  export GRAPHD_TOKEN=%s\n", made.token)
	}
	for _, command := range [][]string{{"graph", "list"}, {"run", "GRAPH", "--thread", "t1", "--input", "{}"}, {"inbox"}} {
		fmt.Fprintf(&b, "  %s\n", call.CommandLine(command...))
	}
	if servers := listOwnAddresses(address); made.ca != "" && len(servers) > 0 {
		fmt.Fprintf(&b, "Other machines need a copy of %s, and call --server %s.\n", made.ca, strings.Join(servers, " or "))
	}
	b.WriteByte('\n')
	return output.WriteDocument(w, b.String())
}
