package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/telemetry"
)

// lookEvery is how soon a changed graph file is noticed.
const lookEvery = 500 * time.Millisecond

// devStore is where `dev` keeps threads unless it is told otherwise.
const devStore = ".graphd/dev.db"

func (p *program) devCommand() *cobra.Command {
	var o serverOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve on a local store and take up changed graph files",
		Long: `Serve like ` + "`serve`" + `, on a store in .graphd and with logs for people. The graph files of --graphs
(default: this folder) are read again when they change: a changed file is a new version of its graph.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Store, o.LogFormat, o.quiet = "", telemetry.FormatConsole, true
			if err := o.complete(cmd.Flags(), p.getenv); err != nil {
				return err
			}
			return p.dev(cmd.Context(), o)
		},
	}
	o.register(cmd.Flags())
	return cmd
}

func (p *program) dev(ctx context.Context, o serverOptions) error {
	if o.Store == "" {
		if err := os.MkdirAll(filepath.Dir(devStore), 0o700); err != nil {
			return err
		}
		o.Store = "sqlite:" + devStore
	}
	if len(o.Graphs) == 0 {
		o.Graphs = []string{"."}
	}
	log, err := p.logger(o)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watch, stop := context.WithCancel(ctx)
	defer stop()
	dirs := o.Graphs
	o.Graphs = nil // a broken file must not keep a developer from starting
	return p.serve(ctx, o, log, func(s *server) {
		for _, dir := range dirs {
			watching.Go(s.registry.Watch(watch, dir, lookEvery, s.reloaded))
		}
		if err := p.welcome(s.address()); err != nil {
			log.Warn("the welcome can't be printed", zap.Error(err))
		}
	})
}

// reloaded logs what became of changed graph files.
func (s *server) reloaded(loaded []*graph.Graph, err error) {
	s.logLoaded(loaded)
	if err != nil {
		s.log.Error("graph files are wrong; the versions before them stay")
		for line := range strings.Lines(err.Error()) {
			s.log.Error(strings.TrimRight(line, "\n"))
		}
	}
}

// welcome says how to call the server.
func (p *program) welcome(address string) error {
	p.server = address
	call := p.self()
	return cli.Line(p.Err, `
graphd listens on %s. In another terminal:
  %s
  %s
  %s
`, address, call.Command("graph", "list"),
		call.Command("run", "GRAPH", "--thread", "t1", "--input", "{}"), call.Command("inbox"))
}
